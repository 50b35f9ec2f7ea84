// Keeps a worker's lease on every ps alive while its training thread computes. It sends heartbeats from its own thread,
// loop and connections, so that an hour-long step isn't taken for a death, and a death is seen at once (the connections
// close with the process). The thread waits for nobody: not for the training thread, and not for its bulk data.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "muster/store/calls/worker_progress.h"
#include "muster/store/messages/messages.h"
#include "muster/transport/io/tcp_event_loop.h"
#include "muster/transport/transport.h"

namespace muster {

class LeaseKeeper {
 public:
  // Starts. One address and one stamp per ps. `progress` must outlive it.
  LeaseKeeper(JobToken token, std::vector<std::string> addresses, std::vector<Stamp> stamps,
              const WorkerProgress& progress, absl::Duration interval);
  ~LeaseKeeper();  // stops and waits for the thread, which never blocks for long
  LeaseKeeper(const LeaseKeeper&) = delete;
  LeaseKeeper& operator=(const LeaseKeeper&) = delete;

 private:
  TcpEventLoop loop_;  // Post is thread-safe; the rest belongs to thread_
  const std::unique_ptr<Transport> transport_;
  bool stopping_ = false;  // touched on the loop only
  std::thread thread_;
};

}  // namespace muster
