// The engine for the pods of a job of Kubernetes, in its supervisor's pod. Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "muster/base/clock.h"
#include "muster/launch/engines/engine.h"
#include "muster/launch/engines/kubernetes/pod_variables.h"
#include "muster/launch/system/fd_loop.h"

namespace muster {

struct PodEngineOptions {
  std::vector<std::string> hosts;        // all of the job
  PodVariables pod;                      // what this process's pod was told
  std::vector<std::string> environment;  // of this process, "NAME=VALUE"
  bool goes_on = false;                  // the agents are there: those of the supervisor before
  std::function<void(const std::string& line)> note = [](const std::string&) {};  // takes a line for the user
};

// Borrows `loop` and `clock`, which must outlive it.
std::unique_ptr<Engine> MakePodEngine(const PodEngineOptions& options, FdLoop& loop, const Clock& clock);

}  // namespace muster
