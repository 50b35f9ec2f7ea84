// How many GPUs a job has on each of its nodes, for steps that are to have all of them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

// Returns the GPUs of each node of the job in `environment` ("NAME=VALUE"), as scontrol says. Empty: the job was asked
// for in a way that gives a step all GPUs of its nodes anyway (--gres), or scontrol can't be asked. A step of a job
// by --gpus-per-task, for example, copies that option, so its one agent on a node would have the GPUs of one task.
// Blocks for up to 10 s. Thread-safe.
std::map<std::string, int> GpusOfNodes(const std::vector<std::string>& environment);

// Reads the output of `scontrol show job --details`, which has all jobs of an array. Pure.
std::map<std::string, int> ParseGpusOfNodes(std::string_view text, const std::string& job);

}  // namespace muster
