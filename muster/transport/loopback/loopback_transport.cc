#include "muster/transport/loopback/loopback_transport.h"

#include <utility>

#include "muster/base/status_macros.h"
#include "muster/transport/loopback/loopback_channel.h"
#include "muster/transport/loopback/loopback_listener.h"

namespace muster {

LoopbackTransport::LoopbackTransport(LoopbackNetwork& network, EventLoop& loop, JobToken token,
                                     const LoopbackOptions& options, std::shared_ptr<LoopbackHost> host)
    : network_(network),
      loop_(loop),
      options_(options),
      party_{{.token = std::move(token), .protocol_version = options.protocol_version}, std::move(host)} {}

absl::StatusOr<std::unique_ptr<Listener>> LoopbackTransport::Listen(const std::string& address,
                                                                    RequestHandler& handler) {
  auto listener = std::make_unique<LoopbackListener>(network_, loop_, handler, party_);
  RETURN_IF_ERROR(listener->Start(address));
  return listener;
}

std::unique_ptr<Channel> LoopbackTransport::Connect(const std::string& address) {
  ++options_.seed;  // so that channels don't retry in step
  return std::make_unique<LoopbackChannel>(network_, loop_, address, party_, options_);
}

}  // namespace muster
