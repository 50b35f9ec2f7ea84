// A thread of a coordinator: runs one function; an error or an exception of it stops everybody. Made and destroyed by
// one thread.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "muster/train/threads/coordinator.h"

namespace muster {

class CoordinatedThread {
 public:
  // Starts at once. `work` ends soon after ShouldStop has become true.
  CoordinatedThread(Coordinator& coordinator, const std::string& name, std::function<absl::Status()> work)
      : thread_([&coordinator, registration = coordinator.Register(name), work = std::move(work)] {
          coordinator.StopOnError(work);
        }) {}
  // Blocks until `work` has returned, a straggler's too: it may use what is destroyed next.
  ~CoordinatedThread() { thread_.join(); }
  CoordinatedThread(const CoordinatedThread&) = delete;
  CoordinatedThread& operator=(const CoordinatedThread&) = delete;

 private:
  std::thread thread_;
};

}  // namespace muster
