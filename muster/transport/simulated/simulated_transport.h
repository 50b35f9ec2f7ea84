// Channels and listeners of a process of a simulated world. See simulated_network.h.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "muster/transport/forwarding_channel.h"
#include "muster/transport/loopback/loopback_transport.h"
#include "muster/transport/simulated/simulated_network.h"

namespace muster {

class SimulatedTransport final : public LoopbackTransport {
 public:
  // For one thread of a process. Its requests meet the faults of `faults`, if given, which must outlive the channels.
  SimulatedTransport(SimulatedNetwork& network, SimulatedThread& thread, FaultScript* faults = nullptr,
                     JobToken token = {}, LoopbackOptions options = {})
      : LoopbackTransport(network, thread.loop(), std::move(token), SeededBy(thread.process(), options),
                          HostOf(&thread.process(), faults)),
        process_(&thread.process()) {}
  // For a client on a loop that it shares with others.
  SimulatedTransport(SimulatedNetwork& network, EventLoop& loop, FaultScript* faults = nullptr, JobToken token = {},
                     const LoopbackOptions& options = {})
      : LoopbackTransport(network, loop, std::move(token), options, HostOf(nullptr, faults)) {}

  std::unique_ptr<Channel> Connect(const std::string& address) override {
    std::unique_ptr<Channel> channel = LoopbackTransport::Connect(address);
    if (process_ == nullptr) return channel;
    return std::make_unique<MortalChannel>(std::move(channel), *process_);
  }

 private:
  // A killed process is unwound: what its callbacks refer to may be gone, and they would never have been called.
  class MortalChannel final : public ForwardingChannel {
   public:
    MortalChannel(std::unique_ptr<Channel> inner, const SimulatedProcess& process)
        : ForwardingChannel(std::move(inner)), process_(process) {}
    CallId Call(const Request& request, ReplyCallback done) override {
      return inner_->Call(request, [&process = process_, done = std::move(done)](absl::StatusOr<Reply>& reply) mutable {
        if (process.alive()) done(reply);
      });
    }

   private:
    const SimulatedProcess& process_;
  };

  // So that two processes don't retry in step.
  static LoopbackOptions SeededBy(const SimulatedProcess& process, LoopbackOptions options) {
    options.seed += process.number() * 100;
    return options;
  }
  static std::shared_ptr<SimulatedHost> HostOf(SimulatedProcess* process, FaultScript* faults) {
    auto host = std::make_shared<SimulatedHost>();
    host->process = process;
    host->faults = faults;
    return host;
  }

  SimulatedProcess* const process_ = nullptr;
};

}  // namespace muster
