#include "muster/store/client/lease_keeper.h"

#include "muster/store/client/lease_beat.h"
#include "muster/transport/tcp/tcp_transport.h"

namespace muster {

LeaseKeeper::LeaseKeeper(JobToken token, std::vector<std::string> addresses, std::vector<Stamp> stamps,
                         absl::Duration interval)
    : transport_(std::make_unique<TcpTransport>(loop_, std::move(token),
                                                // A beat is so small that shared memory doesn't pay.
                                                TcpOptions{.shared_memory = {.enabled = false}})) {
  thread_ = std::thread([this, addresses = std::move(addresses), stamps = std::move(stamps), interval] {
    LeaseBeat beat(*transport_, addresses, stamps, interval);
    loop_.RunUntil([this] { return stopping_; }, absl::InfiniteFuture());
  });
}

LeaseKeeper::~LeaseKeeper() {
  loop_.Post([this] { stopping_ = true; });
  thread_.join();
}

}  // namespace muster
