#include "muster/store/calls/lease_beat.h"

#include <algorithm>
#include <utility>

#include "muster/base/log.h"

namespace muster {
namespace {

// How many intervals an answer may take. Beats don't wait for the answers of earlier ones, so that a slow link costs no
// lease; and no more than so many wait for a ps that is gone.
constexpr int kOutstanding = 8;

}  // namespace

LeaseBeat::LeaseBeat(Transport& transport, const std::vector<std::string>& addresses, std::vector<Stamp> stamps,
                     const WorkerProgress& progress, absl::Duration interval)
    : loop_(transport.loop()), progress_(progress), interval_(interval) {
  for (size_t ps = 0; ps < addresses.size(); ++ps)
    servers_.push_back({.channel = transport.Connect(addresses[ps]), .stamp = stamps[ps]});
  for (Server& server : servers_) Beat(server);
}

LeaseBeat::~LeaseBeat() {
  stopping_ = true;
  for (const Server& server : servers_) loop_.CancelTimer(server.next);
}

void LeaseBeat::Beat(Server& server) {
  if (server.replaced) return;
  const uint64_t beat = ++server.beat;
  const HeartbeatRequest message{.stamp = server.stamp,
                                 .beat = beat,
                                 .heard = server.heard,
                                 .steps = progress_.steps(),
                                 .step_nanos = static_cast<uint64_t>(absl::ToInt64Nanoseconds(progress_.step())),
                                 .busy = progress_.busy()};
  server.next = loop_.CallAt(loop_.Now() + interval_, [this, &server] { Beat(server); });
  const Request request{.method = static_cast<uint16_t>(StoreMethod::kHeartbeat),
                        .control = Encode(message),
                        .deadline = loop_.Now() + kOutstanding * interval_};
  server.channel->Call(request, [this, &server, beat](absl::StatusOr<Reply> reply) {
    if (!stopping_) OnAnswer(server, beat, reply.status());
  });
}

// The training thread finds out on its own, with a name; here a line in the log is enough. A ps that doesn't know this
// task yet (Aborted) will, once the session has joined again.
void LeaseBeat::OnAnswer(Server& server, uint64_t beat, const absl::Status& status) {
  if (status.ok()) server.heard = std::max(server.heard, beat);
  if (!absl::IsFailedPrecondition(status) || std::exchange(server.replaced, true)) return;
  loop_.CancelTimer(server.next);
  LogWarning("heartbeats to ps:", &server - servers_.data(), " end: ", status.message());
}

}  // namespace muster
