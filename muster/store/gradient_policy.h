// What a worker does with its gradients before they are pushed, by the model's optimizer: looks whether they are
// finite, and computes the norms that they are clipped by. Only the worker has all of a gradient. Pure functions;
// thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "muster/store/store_client.h"

namespace muster {

// True: the gradients aren't finite and are to be dropped. InvalidArgument: … and training is to stop.
absl::StatusOr<bool> DropsNonFinite(const ModelBinding& binding, absl::FunctionRef<ByteSpan(size_t)> gradient,
                                    const std::string& task, int64_t global_step);

// What the gradient of each variable is multiplied by; empty: 1 for all.
std::vector<double> ClipScales(const ModelBinding& binding, absl::FunctionRef<ByteSpan(size_t)> gradient);

}  // namespace muster
