// Places tasks on nodes and devices for `muster run --layout node`: the first node has the master, a ps and two
// workers, every other node a ps and one worker per device. Pure, thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/cluster/task_id.h"

namespace muster {

struct PlacedTask {
  TaskId task;
  std::string node;
  int device = 0;  // of the node, from 0: a GPU, or a mere slot number on a node without GPUs
};

struct NodeLayoutRequest {
  std::vector<std::string> nodes;  // names; the first is the root
  int devices = 4;                 // of each node
};

// Returns the tasks in the order in which to start them: ps, the master, workers. On the first node, master 0, worker
// 0, worker 1 and ps 0 have devices 0, 1, 2 and 3, starting again at 0 if it has fewer. On the others each worker has a
// device of its own, and the ps, which computes nothing, has the first. InvalidArgument naming the flag: no node, a
// node named twice, no device.
absl::StatusOr<std::vector<PlacedTask>> PlaceByNode(const NodeLayoutRequest& request);

// Returns the CUDA_VISIBLE_DEVICES with which a process sees only device `device`. `visible` is the launcher's own
// value of it, which lists the devices in order; empty: all devices, by number.
std::string VisibleDevice(int device, const std::string& visible);

// Returns how many GPUs this machine has according to its driver, 0 without one. `driver`: the driver's folder of GPUs.
int CountGpus(const std::string& driver = "/proc/driver/nvidia/gpus");

}  // namespace muster
