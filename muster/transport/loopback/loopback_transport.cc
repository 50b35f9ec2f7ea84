#include "muster/transport/loopback/loopback_transport.h"

#include <utility>

#include "muster/base/status_macros.h"
#include "muster/transport/loopback/loopback_channel.h"
#include "muster/transport/loopback/loopback_listener.h"

namespace muster {

LoopbackTransport::LoopbackTransport(LoopbackNetwork& network, EventLoop& loop, JobToken token,
                                     const LoopbackOptions& options)
    : network_(network), loop_(loop), token_(std::move(token)), options_(options) {}

HandshakeIdentity LoopbackTransport::identity() const {
  HandshakeIdentity identity;
  identity.token = token_;
  identity.protocol_version = options_.protocol_version;
  return identity;
}

absl::StatusOr<std::unique_ptr<Listener>> LoopbackTransport::Listen(const std::string& address,
                                                                    RequestHandler& handler) {
  auto listener = std::make_unique<LoopbackListener>(network_, loop_, handler, identity());
  RETURN_IF_ERROR(listener->Start(address));
  return listener;
}

std::unique_ptr<Channel> LoopbackTransport::Connect(const std::string& address) {
  LoopbackOptions options = options_;
  options.seed += ++channels_;  // so that channels don't retry in step
  return std::make_unique<LoopbackChannel>(network_, loop_, address, identity(), options);
}

}  // namespace muster
