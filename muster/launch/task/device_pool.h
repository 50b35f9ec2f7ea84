// Which GPUs a task gets where its host's own environment names some: a batch system gives a job GPUs by
// CUDA_VISIBLE_DEVICES, and these are the pool that the tasks share. Pure, thread-safe.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace muster {

// Returns a task's CUDA_VISIBLE_DEVICES. `wanted`: places in the pool, "0,2"; anything else, as "" (no GPU) or names of
// devices, stays as it is. `pool`: the host's own value: numbers, UUIDs, names of MIG parts, which aren't renumbered;
// nullopt: there is none, and places are numbers. FailedPrecondition: the pool has fewer.
absl::StatusOr<std::string> DevicesFromPool(const std::string& wanted, const std::optional<std::string>& pool);

}  // namespace muster
