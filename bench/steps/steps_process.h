// A process of `bench steps` that trains one way: the plain loop, or a worker of the cluster that TF_CONFIG describes.
// meter.h says how it measures itself and what it leaves in the measurement's folder.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "bench/steps/steps_way.h"
#include "muster/cluster/identity/task_config.h"

namespace muster::bench {

struct StepsProcess {
  StepsWay way;
  StepsSettings settings;
  std::string folder;
  int task = 0;
  int ps = 0;  // the ps's process, whose processor time worker 0 takes; 0: none
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(StepsProcess, way, settings, folder, task, ps)

// Throws Error.
void Train(const TaskConfig& task, const StepsProcess& process);

}  // namespace muster::bench
