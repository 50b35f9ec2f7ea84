// What can be set about the TCP transport. The defaults suit a cluster on one network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "muster/transport/backoff.h"
#include "muster/transport/frame.h"
#include "muster/transport/handshake.h"
#include "muster/transport/io/shared_memory_options.h"

namespace muster {

struct TcpOptions {
  uint16_t protocol_version = kProtocolVersion;
  std::string build_version = HandshakeIdentity().build_version;
  FrameLimits limits;

  SharedMemoryOptions shared_memory;

  absl::Duration handshake_timeout = absl::Seconds(5);
  absl::Duration connect_timeout = absl::Seconds(5);  // of one attempt
  BackoffOptions backoff;

  // A frame of which less than 1 KiB moves within this time is given up, and its connection with it.
  absl::Duration stall_timeout = absl::Seconds(30);
  // Calls are in flight, but nothing is received: the channel pings, and at last gives the connection up.
  absl::Duration ping_interval = absl::Seconds(5);
  absl::Duration silence_timeout = absl::Seconds(60);

  // Of one channel; more end with ResourceExhausted.
  size_t max_calls_in_flight = 1024;

  // Of one listener; more are told that it is busy.
  size_t max_connections = 4096;
  // Of one connection of a listener; above any of these it reads no further request from it.
  size_t max_unanswered = 1024;
  size_t max_unanswered_control_bytes = size_t{64} << 20;
  size_t max_queued_replies = 64;
  size_t max_queued_reply_bytes = size_t{64} << 20;
};

}  // namespace muster
