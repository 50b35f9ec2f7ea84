#include "muster/train/node/remote_work.h"

#include <utility>

#include "muster/transport/choice/transport_choice.h"

namespace muster {

RemoteWork::RemoteWork(const JobToken& token, const std::string& address, WorkSpec spec,
                       std::shared_ptr<WorkTally> tally, WorkQueueClientOptions options)
    // The requests are so small that shared memory doesn't pay.
    : transport_(MakeTransport(TransportChoice::kTcp, loop_, token)),
      client_(*transport_, address, std::move(spec), std::move(tally), std::move(options)) {}

}  // namespace muster
