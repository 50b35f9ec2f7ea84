#include "muster/transport/fault/fault_transport.h"

#include "muster/transport/fault/fault_channel.h"

namespace muster {

std::unique_ptr<Channel> FaultTransport::Connect(const std::string& address) {
  return std::make_unique<FaultChannel>(inner_.loop(), inner_.Connect(address), script_);
}

}  // namespace muster
