#include "muster/store/service/cut_off_watch.h"

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "muster/base/log.h"

namespace muster {
namespace {

// Returns when a client of another host was heard last; InfinitePast: never.
absl::Time LastHeardElsewhere(const ClientTable& table) {
  absl::Time last = absl::InfinitePast();
  for (const ClientTable::Client& client : table.clients())
    if (client.incarnation != 0 && !client.on_this_host) last = std::max(last, client.last_heard);
  return last;
}

}  // namespace

CutOffWatch::CutOffWatch(EventLoop& loop, const ClientTable& clients, CutFollower& cut, Options options)
    : loop_(loop), clients_(clients), cut_(cut), options_(std::move(options)), heard_(loop.Now()) {
  if (options_.supervisor_count) Look();
}

CutOffWatch::~CutOffWatch() {
  if (timer_) loop_.CancelTimer(*timer_);
}

void CutOffWatch::Hold() {
  const std::shared_ptr<Arena> arena = options_.arena();
  if (arena == nullptr || cut_.is_cut_off() || !cut_.BeginCutOff(arena)) return;
  LogWarning(options_.task, " has heard neither its launcher nor another host for ", absl::FormatDuration(kAfter),
             " and may have been replaced there: updates wait until somebody is heard");
}

void CutOffWatch::Look() {
  const absl::Time now = loop_.Now();
  const std::optional<uint64_t> count = options_.supervisor_count();
  if (!count.has_value() || count != count_) heard_ = now;
  count_ = count;
  heard_ = std::max(heard_, LastHeardElsewhere(clients_));
  const bool silent = now - heard_ >= kAfter;
  const bool was_silent = std::exchange(silent_, silent);
  if (!silent && cut_.is_cut_off()) {
    LogInfo(options_.task, " is heard again by others: updates go on");
    cut_.EndCutOff();
  } else if (silent && was_silent) {
    Hold();
  }
  timer_ = loop_.CallAt(now + kPeriod, [this] { Look(); });
}

}  // namespace muster
