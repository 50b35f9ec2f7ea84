// A thread of a coordinator. It runs one function, whose error or exception stops every thread of the coordinator.
// Created and destroyed by one thread.
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
  // Starts at once. `work` must end soon after ShouldStop has become true.
  CoordinatedThread(Coordinator& coordinator, const std::string& name, std::function<absl::Status()> work)
      : thread_([&coordinator, registration = coordinator.Register(name), work = std::move(work)] {
          coordinator.StopOnError(work);
        }) {}
  // Blocks until `work` has returned, even if Join has given this thread up: `work` may use what is destroyed next.
  ~CoordinatedThread() { thread_.join(); }
  CoordinatedThread(const CoordinatedThread&) = delete;
  CoordinatedThread& operator=(const CoordinatedThread&) = delete;

 private:
  std::thread thread_;
};

}  // namespace muster
