// The heartbeats of one client to every ps, as a state machine on any loop: LeaseKeeper runs it with a thread and real
// connections, the simulation with simulated ones. Lives on the transport's loop.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/store/messages/messages.h"
#include "muster/transport/transport.h"

namespace muster {

class LeaseBeat {
 public:
  // Starts. One address and one stamp per ps; `transport` must outlive it.
  LeaseBeat(Transport& transport, const std::vector<std::string>& addresses, std::vector<Stamp> stamps,
            absl::Duration interval);
  ~LeaseBeat();
  LeaseBeat(const LeaseBeat&) = delete;
  LeaseBeat& operator=(const LeaseBeat&) = delete;

 private:
  void Beat(size_t ps);

  EventLoop& loop_;
  const std::vector<Stamp> stamps_;
  const absl::Duration interval_;
  bool stopping_ = false;
  std::vector<EventLoop::TimerId> timers_;  // for the next beat to each ps
  std::vector<std::unique_ptr<Channel>> channels_;
};

}  // namespace muster
