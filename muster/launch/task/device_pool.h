// Which GPUs a task gets where its host's own environment names some: a batch system gives a job GPUs by
// CUDA_VISIBLE_DEVICES, or AMD's by HIP_VISIBLE_DEVICES or ROCR_VISIBLE_DEVICES, and these are the pool that the tasks
// share. Pure, thread-safe.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace muster {

// Environment variables by name.
using NamedValues = std::vector<std::pair<std::string, std::string>>;

// Returns the variables of the environment ("NAME=VALUE") that are a pool to be divided; none: places are numbers. A
// ROCR_VISIBLE_DEVICES beside one of the others stays as it is, since those count among its devices.
NamedValues DevicePoolIn(const std::vector<std::string>& environment);

// Replaces a task's CUDA_VISIBLE_DEVICES by the variables of the pool. It has places in the pool, "0,2", or is empty
// (no GPU); names of devices are the user's own choice and stay. Devices keep the names that the pool has for them:
// numbers, UUIDs, names of MIG parts. FailedPrecondition: the pool has fewer.
[[nodiscard]] absl::Status GiveDevices(const NamedValues& pool, NamedValues& environment);

}  // namespace muster
