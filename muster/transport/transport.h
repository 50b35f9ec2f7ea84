// Makes channels and listeners of one kind on one EventLoop. See channel.h and listener.h.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "muster/transport/channel.h"
#include "muster/transport/event_loop.h"
#include "muster/transport/listener.h"
#include "muster/transport/task_addresses.h"

namespace muster {

// Proves that both ends belong to one job. The launcher makes it and passes it in the environment (MUSTER_JOB_TOKEN);
// it is never sent. Empty: only loopback addresses are served, each with a secret of its own that only processes of the
// same user on the same host find.
struct JobToken {
  std::string secret;
  // A file of this host in which the job's launcher keeps the addresses of tasks that have moved (moved_addresses.h).
  // Channels read it before each connection. Empty: no task moves.
  std::string cluster_file = "";
  // What a listener knows of the cluster: it refuses clients that meant to reach another task.
  TaskAddresses tasks = {};
};

class Transport {
 public:
  virtual ~Transport() = default;

  virtual EventLoop& loop() = 0;

  // Serves `address` ("host:port", "[v6]:port"; port 0 takes a free one). `handler` must outlive the listener.
  // AlreadyExists: the port is in use (the message names it). PermissionDenied: not a loopback address and no token.
  // FailedPrecondition: no token, and no folder that is this user's alone for the port's secret.
  // InvalidArgument: an address that can't be parsed or doesn't resolve.
  virtual absl::StatusOr<std::unique_ptr<Listener>> Listen(const std::string& address, RequestHandler& handler) = 0;

  // Never fails and never blocks: connecting starts with the first call, which reports any error.
  virtual std::unique_ptr<Channel> Connect(const std::string& address) = 0;
};

}  // namespace muster
