#include "muster/store/lease_keeper.h"

#include "muster/base/log.h"
#include "muster/transport/tcp/tcp_transport.h"

namespace muster {

LeaseKeeper::LeaseKeeper(JobToken token, std::vector<std::string> addresses, std::vector<Stamp> stamps,
                         absl::Duration interval)
    : stamps_(std::move(stamps)),
      interval_(interval),
      transport_(std::make_unique<TcpTransport>(loop_, std::move(token))) {
  for (const std::string& address : addresses) channels_.push_back(transport_->Connect(address));
  thread_ = std::thread([this] { Work(); });
}

LeaseKeeper::~LeaseKeeper() {
  loop_.Post([this] { stopping_ = true; });
  thread_.join();
}

void LeaseKeeper::Work() {
  for (size_t ps = 0; ps < channels_.size(); ++ps) Beat(ps);
  loop_.RunUntil([this] { return stopping_; }, absl::InfiniteFuture());
  channels_.clear();
}

void LeaseKeeper::Beat(size_t ps) {
  Request request{.method = static_cast<uint16_t>(StoreMethod::kHeartbeat),
                  .control = Encode(HeartbeatRequest{stamps_[ps]}),
                  .deadline = loop_.Now() + 2 * interval_};
  channels_[ps]->Call(std::move(request), [this, ps](absl::StatusOr<Reply> reply) {
    if (stopping_) return;
    // The training thread finds out by itself, with a name; here it is only worth a line in the log.
    // A ps that doesn't know this task yet (Aborted) will, once the session has joined again.
    if (absl::IsFailedPrecondition(reply.status())) {
      LogWarning("heartbeats to ps:", ps, " end: ", reply.status().message());
      return;
    }
    loop_.CallAt(loop_.Now() + interval_, [this, ps] { Beat(ps); });
  });
}

}  // namespace muster
