#include "muster/store/calls/lease_keeper.h"

#include "muster/store/calls/lease_beat.h"
#include "muster/transport/choice/transport_choice.h"

namespace muster {

LeaseKeeper::LeaseKeeper(JobToken token, std::vector<std::string> addresses, std::vector<Stamp> stamps,
                         const WorkerProgress& progress, absl::Duration interval)
    : transport_(MakeTransport(TransportChoice::kTcp, loop_, std::move(token))) {
  thread_ = std::thread([this, addresses = std::move(addresses), stamps = std::move(stamps), &progress, interval] {
    LeaseBeat beat(*transport_, addresses, stamps, progress, interval);
    loop_.RunUntil([this] { return stopping_; }, absl::InfiniteFuture());
  });
}

LeaseKeeper::~LeaseKeeper() {
  loop_.Post([this] { stopping_ = true; });
  thread_.join();
}

}  // namespace muster
