// A transport whose channels meet the faults of a script; everything else is the inner transport's. For tests.
#pragma once

#include <memory>
#include <string>

#include "muster/transport/fault/fault_script.h"
#include "muster/transport/transport.h"

namespace muster {

class FaultTransport final : public Transport {
 public:
  // Both must outlive the transport and everything it makes. All channels count in the same script.
  FaultTransport(Transport& inner, FaultScript& script) : inner_(inner), script_(script) {}

  EventLoop& loop() override { return inner_.loop(); }
  absl::StatusOr<std::unique_ptr<Listener>> Listen(const std::string& address, RequestHandler& handler) override {
    return inner_.Listen(address, handler);
  }
  std::unique_ptr<Channel> Connect(const std::string& address) override;

 private:
  Transport& inner_;
  FaultScript& script_;
};

}  // namespace muster
