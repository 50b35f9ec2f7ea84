// Which tasks run on which node, and which device each of them sees, in the layout of `muster run --layout node`: the
// first node has the master, a ps and two workers, every further one a ps and a worker for each device. Pure,
// thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/cluster/task_id.h"

namespace muster {

struct PlacedTask {
  TaskId task;
  std::string node;
  int device = 0;  // of the node, from 0: a GPU, or without GPUs a slot that has no more meaning than its number
};

struct NodeLayoutRequest {
  std::vector<std::string> nodes;  // by name, the first is the root
  int devices = 4;                 // of each node
};

// In the order in which to start them: ps, the master, workers. On the first node master 0, worker 0, worker 1 and ps 0
// have devices 0, 1, 2 and 3, from 0 again where there are fewer; on the others each worker has one of its own, and the
// ps, which computes nothing, the first. InvalidArgument naming the flag: no node, one twice, no device.
absl::StatusOr<std::vector<PlacedTask>> PlaceByNode(const NodeLayoutRequest& request);

// What makes a process see device `device` alone, as CUDA_VISIBLE_DEVICES. `visible` is that variable of the launcher:
// the devices are those that it names, in its order; empty: all, by number.
std::string VisibleDevice(int device, const std::string& visible);

// How many GPUs this machine has, as its driver says; 0 without one. `driver`: the driver's folder of them.
int CountGpus(const std::string& driver = "/proc/driver/nvidia/gpus");

}  // namespace muster
