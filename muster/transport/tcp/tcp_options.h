// Options of the TCP transport. The defaults suit a cluster on one network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/transport/backoff.h"
#include "muster/transport/frame.h"
#include "muster/transport/handshake.h"
#include "muster/transport/io/shared_memory_options.h"
#include "muster/transport/io/tcp_address.h"

namespace muster {

// Returns at least one endpoint of a name, as Resolve. A channel calls it on another thread, as it may block.
using NameLookup = std::function<absl::StatusOr<std::vector<Endpoint>>(const TcpAddress& name)>;

struct TcpOptions {
  uint16_t protocol_version = kProtocolVersion;
  std::string build_version = HandshakeIdentity().build_version;
  FrameLimits limits;

  SharedMemoryOptions shared_memory;

  absl::Duration handshake_timeout = absl::Seconds(5);
  // A listener's: how long it waits for a client's first message. It is sent with the connection itself.
  absl::Duration hello_timeout = absl::Seconds(1);
  absl::Duration connect_timeout = absl::Seconds(5);  // for one attempt
  BackoffOptions backoff;
  // Names are looked up anew for each attempt: one may come later, or have another address after a restart.
  NameLookup lookup = [](const TcpAddress& name) { return Resolve(name, /*numeric_only=*/false); };

  // A frame that moves less than 1 KiB within this time is given up, together with its connection.
  absl::Duration stall_timeout = absl::Seconds(30);
  // If calls are in flight but nothing is received, the channel pings, and finally gives up the connection.
  absl::Duration ping_interval = absl::Seconds(5);
  absl::Duration silence_timeout = absl::Seconds(60);

  // Limit for one channel; further calls end with ResourceExhausted.
  size_t max_calls_in_flight = 1024;

  // Limit for one listener; further clients are told that it is busy.
  size_t max_connections = 4096;
  // Limits of connections in the handshake, for one listener and for one address of clients; above any of them the
  // oldest makes room for the newest.
  size_t max_strangers = 256;
  size_t max_strangers_per_address = 64;
  // Limit for all descriptors of the process; 0: the system's. A listener leaves some for files, so that a flood of
  // connections can't stop a checkpoint.
  size_t max_descriptors = 0;
  // Limits for one connection of a listener; above any of them it reads no further request from it.
  size_t max_unanswered = 1024;
  size_t max_unanswered_control_bytes = size_t{64} << 20;
  size_t max_queued_replies = 64;
  size_t max_queued_reply_bytes = size_t{64} << 20;
};

}  // namespace muster
