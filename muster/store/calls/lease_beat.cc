#include "muster/store/calls/lease_beat.h"

#include "muster/base/log.h"

namespace muster {

LeaseBeat::LeaseBeat(Transport& transport, const std::vector<std::string>& addresses, std::vector<Stamp> stamps,
                     absl::Duration interval)
    : loop_(transport.loop()), stamps_(std::move(stamps)), interval_(interval), timers_(addresses.size()) {
  for (const std::string& address : addresses) channels_.push_back(transport.Connect(address));
  for (size_t ps = 0; ps < channels_.size(); ++ps) Beat(ps);
}

LeaseBeat::~LeaseBeat() {
  stopping_ = true;
  for (const EventLoop::TimerId timer : timers_) loop_.CancelTimer(timer);
}

void LeaseBeat::Beat(size_t ps) {
  Request request{.method = static_cast<uint16_t>(StoreMethod::kHeartbeat),
                  .control = Encode(HeartbeatRequest{stamps_[ps]}),
                  .deadline = loop_.Now() + 2 * interval_};
  channels_[ps]->Call(request, [this, ps](absl::StatusOr<Reply> reply) {
    if (stopping_) return;
    // The training thread finds out on its own, with a name; here a line in the log is enough. A ps that doesn't know
    // this task yet (Aborted) will, once the session has joined again.
    if (absl::IsFailedPrecondition(reply.status())) {
      LogWarning("heartbeats to ps:", ps, " end: ", reply.status().message());
      return;
    }
    timers_[ps] = loop_.CallAt(loop_.Now() + interval_, [this, ps] { Beat(ps); });
  });
}

}  // namespace muster
