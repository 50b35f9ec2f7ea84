// Channels and listeners within one process: the same contract as TCP without its bytes. Bulk is copied once, straight
// from the sender's memory into the receiver's, by the serving thread. Works on any EventLoop: all ends on one
// (simulated or real), or each on a loop and thread of its own. The network between them may be a simulated one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "muster/transport/backoff.h"
#include "muster/transport/frame.h"
#include "muster/transport/handshake.h"
#include "muster/transport/loopback/loopback_network.h"
#include "muster/transport/transport.h"

namespace muster {

struct LoopbackOptions {
  uint16_t protocol_version = kProtocolVersion;
  FrameLimits limits;
  BackoffOptions backoff;
  size_t max_calls_in_flight = 1024;  // of one channel; further calls end with ResourceExhausted
  uint64_t seed = 1;                  // of the back-off's jitter
};

class LoopbackTransport : public Transport {
 public:
  // `network` and `loop` must outlive the transport and what it makes.
  LoopbackTransport(LoopbackNetwork& network, EventLoop& loop, JobToken token = {}, const LoopbackOptions& options = {},
                    std::shared_ptr<LoopbackHost> host = nullptr);

  EventLoop& loop() override { return loop_; }
  absl::StatusOr<std::unique_ptr<Listener>> Listen(const std::string& address, RequestHandler& handler) override;
  std::unique_ptr<Channel> Connect(const std::string& address) override;

 private:
  LoopbackNetwork& network_;
  EventLoop& loop_;
  LoopbackOptions options_;  // the seed is the last channel's
  const LoopbackParty party_;
};

}  // namespace muster
