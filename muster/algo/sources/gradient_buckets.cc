#include "muster/algo/sources/gradient_buckets.h"

#include <algorithm>
#include <map>
#include <utility>

namespace muster {

std::vector<uint32_t> CompleteOrder(const std::vector<VariableSpec>& variables, std::span<const uint32_t> announced) {
  std::vector<uint32_t> order;
  std::vector<bool> named(variables.size());
  const auto add = [&](uint32_t variable) {
    if (named[variable] || variables[variable].kind != VariableKind::kTrainable) return;
    named[variable] = true;
    order.push_back(variable);
  };
  for (const uint32_t variable : announced) add(variable);
  for (size_t i = variables.size(); i-- > 0;) add(static_cast<uint32_t>(i));
  return order;
}

bool IsCompleteOrder(const std::vector<VariableSpec>& variables, std::span<const uint32_t> order) {
  std::vector<bool> missing(variables.size());
  for (size_t i = 0; i < variables.size(); ++i) missing[i] = variables[i].kind == VariableKind::kTrainable;
  for (const uint32_t variable : order) {
    if (variable >= missing.size() || !missing[variable]) return false;
    missing[variable] = false;
  }
  return std::find(missing.begin(), missing.end(), true) == missing.end();
}

std::vector<GradientBucket> PlanBuckets(const std::vector<VariableSpec>& variables, std::span<const uint32_t> order,
                                        size_t bucket_bytes) {
  std::vector<GradientBucket> complete;
  std::map<DType, GradientBucket> open;
  for (const uint32_t variable : order) {
    const DType dtype = variables[variable].dtype;
    GradientBucket& bucket = open[dtype];
    bucket.dtype = dtype;
    bucket.variables.push_back(variable);
    bucket.bytes += static_cast<size_t>(variables[variable].bytes());
    if (bucket.bytes >= bucket_bytes) complete.push_back(std::exchange(bucket, {}));
  }
  for (auto& [dtype, bucket] : open)
    if (!bucket.variables.empty()) complete.push_back(std::move(bucket));
  return complete;
}

}  // namespace muster
