#include "muster/sim/progress_watch.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

// Beyond the limit: a worker's last heartbeat before the ps looks again, what the ps has to read, and stops of the ps
// too short to be seen here.
constexpr absl::Duration kSlack = absl::Seconds(5);
// A client that waits is heard more often; a ps that wasn't told anything for so long was stopped, or cut off.
constexpr absl::Duration kHeardEvery = absl::Milliseconds(1500);

}  // namespace

void ProgressWatch::Verify() {
  const StoreService::View view = service_.MakeView();
  const absl::Time seen = std::exchange(seen_, view.now);
  const auto& clients = view.clients->clients();
  const bool gated = view.arena != nullptr && view.arena->model().gated() && view.arena->model().gate.elastic;
  const bool waits = gated && view.ending.empty() && view.arena->header().gate.contributors > 0 &&
                     view.arena->header().rounds.held_from == 0;
  if (!waits || view.arena->header().gate.round != round_ || view.now > seen + kHeardEvery)
    owes_since_.assign(clients.size(), absl::InfiniteFuture());
  if (!waits) return;
  round_ = view.arena->header().gate.round;
  for (size_t i = 0; i < clients.size(); ++i) {
    const bool in_round = view.arena->client(static_cast<int>(i)).numbers.contributed == round_ + 1;
    const bool trains = clients[i].busy.empty() && clients[i].steps >= 2;
    if (in_round || !trains || !view.clients->Present(clients[i], view.now)) {
      owes_since_[i] = absl::InfiniteFuture();
    } else {
      owes_since_[i] = std::min(owes_since_[i], view.now);
      Check(clients[i], view.now, owes_since_[i]);
    }
  }
}

void ProgressWatch::Check(const ClientTable::Client& client, absl::Time now, absl::Time& owes_since) {
  const absl::Duration limit = std::max(absl::Seconds(10), 5 * client.step);
  if (now - owes_since <= limit + kSlack) return;
  violated_(absl::StrCat("ps ", ps_, ": ", client.task, " has kept round ", round_, " waiting for ",
                         absl::FormatDuration(now - owes_since), ", the limit is ", absl::FormatDuration(limit)));
}

}  // namespace muster
