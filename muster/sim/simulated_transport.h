// Channels and listeners of one thread of a simulated process. See simulated_network.h.
#pragma once

#include <memory>
#include <string>

#include "muster/base/status_macros.h"
#include "muster/sim/simulated_channel.h"
#include "muster/sim/simulated_listener.h"
#include "muster/transport/transport.h"

namespace muster {

class SimulatedTransport final : public Transport {
 public:
  SimulatedTransport(SimulatedNetwork& network, SimulatedThread& thread) : network_(network), thread_(thread) {}

  EventLoop& loop() override { return thread_.loop(); }
  absl::StatusOr<std::unique_ptr<Listener>> Listen(const std::string& address, RequestHandler& handler) override {
    auto listener = std::make_unique<SimulatedListener>(network_, thread_, handler, address);
    RETURN_IF_ERROR(network_.Listen(address, listener.get()));
    return listener;
  }
  std::unique_ptr<Channel> Connect(const std::string& address) override {
    // The seed differs by process, so that two processes don't retry in step.
    return std::make_unique<SimulatedChannel>(network_, thread_, address,
                                              1 + thread_.process().number() * 100 + ++channels_);
  }

 private:
  SimulatedNetwork& network_;
  SimulatedThread& thread_;
  uint64_t channels_ = 0;
};

}  // namespace muster
