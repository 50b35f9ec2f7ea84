// Which gradients are averaged together: small ones wait for each other, since every operation of a group costs a
// meeting of its ranks, but not for those that come much later, so that averaging can begin while others are still
// computed. The same on every rank that gives the same order. Pure functions.
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

// All trainable variables: first those of `announced` in that order, then the others, last ones first, as a backward
// pass comes to them. As numbers that travel.
std::vector<uint32_t> CompleteOrder(const std::vector<VariableSpec>& variables, std::span<const uint32_t> announced);

// Whether `order` names each trainable variable once, and nothing else.
bool IsCompleteOrder(const std::vector<VariableSpec>& variables, std::span<const uint32_t> order);

// Buckets of one type each, in the order in which they are complete when gradients come in that of `order`. A bucket
// is complete with the variable that brings it to `bucket_bytes`; no variable is divided.
std::vector<GradientBucket> PlanBuckets(const std::vector<VariableSpec>& variables, std::span<const uint32_t> order,
                                        size_t bucket_bytes);

}  // namespace muster
