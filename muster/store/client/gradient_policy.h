// What a worker does with its gradients before they are pushed: looks whether they fit their variables and, by the
// model's optimizer, whether they are finite, and computes the norms that they are clipped by. Only the worker has all
// of a gradient. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "muster/store/client/store_client.h"

namespace muster {

// InvalidArgument, naming the variable: a gradient that isn't as long as its variable (empty: there is none).
[[nodiscard]] absl::Status CheckGradients(const ModelBinding& binding, absl::FunctionRef<ByteSpan(size_t)> gradient);

// Whether what is pushed of one gradient depends on all of them.
bool NeedsAllGradients(const OptimizerSpec& optimizer);

// Σ g² of each variable's gradient, 0 where there is none: the one pass over all gradients that both of the following
// need. Empty: the optimizer neither clips by a norm nor looks whether gradients are finite. Infinite where a gradient
// would be sent as infinite (`wire`; null: all are used as they are): whoever looks takes it for what will be applied.
void FindSquares(const ModelBinding& binding, absl::FunctionRef<ByteSpan(size_t)> gradient, const WireStaging* wire,
                 std::vector<double>& squares);

// True: the gradients aren't finite and are to be dropped. InvalidArgument: … and training is to stop.
absl::StatusOr<bool> DropsNonFinite(const ModelBinding& binding, const std::vector<double>& squares,
                                    const std::string& task, int64_t global_step);

// What the gradient of each variable is multiplied by; empty: 1 for all.
void FindClipScales(const ModelBinding& binding, const std::vector<double>& squares, std::vector<double>& scales);

}  // namespace muster
