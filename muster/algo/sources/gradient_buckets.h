// Decides which gradients are averaged together. Small ones are collected, because every operation of a group costs a
// meeting of its ranks; but none waits for gradients that come much later, so averaging can begin while others are
// still being computed. Ranks that give the same order get the same buckets. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "muster/base/dtype.h"
#include "muster/cluster/placement/variable_spec.h"

namespace muster {

struct GradientBucket {
  DType dtype = DType::kFloat32;
  std::vector<size_t> variables;
  size_t bytes = 0;
};

// Orders all trainable variables: first those of `announced` in that order, then the others from last to first, as a
// backward pass reaches them. 32-bit numbers, because they are sent to other ranks.
std::vector<uint32_t> CompleteOrder(const std::vector<VariableSpec>& variables, std::span<const uint32_t> announced);

// Returns whether `order` names each trainable variable exactly once and nothing else.
bool IsCompleteOrder(const std::vector<VariableSpec>& variables, std::span<const uint32_t> order);

// Returns buckets of one type each, in the order in which they become complete if gradients come in `order`. The
// variable that brings a bucket to `bucket_bytes` completes it; no variable is divided.
std::vector<GradientBucket> PlanBuckets(const std::vector<VariableSpec>& variables, std::span<const uint32_t> order,
                                        size_t bucket_bytes);

}  // namespace muster
