// The heartbeats of one client to every ps, as a state machine on any loop: LeaseKeeper runs it with a thread and real
// connections, the simulation with simulated ones. Each says which earlier ones were answered, and how the worker gets
// on (docs/store/gates.md, "Who is there"). Lives on the transport's loop.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/store/calls/worker_progress.h"
#include "muster/store/messages/messages.h"
#include "muster/transport/transport.h"

namespace muster {

class LeaseBeat {
 public:
  // Starts. One address and one stamp per ps; `transport` and `progress` must outlive it.
  LeaseBeat(Transport& transport, const std::vector<std::string>& addresses, std::vector<Stamp> stamps,
            const WorkerProgress& progress, absl::Duration interval);
  ~LeaseBeat();
  LeaseBeat(const LeaseBeat&) = delete;
  LeaseBeat& operator=(const LeaseBeat&) = delete;

 private:
  struct Server {
    std::unique_ptr<Channel> channel;
    Stamp stamp;
    uint64_t beat = 0;
    uint64_t heard = 0;
    bool replaced = false;  // another process has the row
    EventLoop::TimerId next{};
  };
  void Beat(Server& server);
  void OnAnswer(Server& server, uint64_t beat, const absl::Status& status);

  EventLoop& loop_;
  const WorkerProgress& progress_;
  const absl::Duration interval_;
  bool stopping_ = false;
  std::vector<Server> servers_;
};

}  // namespace muster
