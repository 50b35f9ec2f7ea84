// What a worker does with its gradients before it pushes them: checks that they fit their variables and, if the model's
// optimizer wants it, that they are finite, and computes the norms for clipping. Only the worker has the whole
// gradient. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "muster/store/client/store_client.h"

namespace muster {

// InvalidArgument names a variable whose gradient hasn't the variable's length (empty: no gradient).
[[nodiscard]] absl::Status CheckGradients(const ModelBinding& binding, absl::FunctionRef<ByteSpan(size_t)> gradient);

// Whether what is pushed of one gradient depends on all gradients.
bool NeedsAllGradients(const OptimizerSpec& optimizer);

// Computes Σ g² of each variable's gradient, 0 if it has none: the one pass over all gradients that both functions
// below need. Empty: the optimizer neither clips by a norm nor checks for finite gradients. Infinite for a gradient
// that would be sent as infinite (`wire`; null: all are used as they are), so that the check sees what will be applied.
void FindSquares(const ModelBinding& binding, absl::FunctionRef<ByteSpan(size_t)> gradient, const WireStaging* wire,
                 std::vector<double>& squares);

// True: drop the gradients, which aren't finite. InvalidArgument: they aren't finite, and training must stop.
absl::StatusOr<bool> DropsNonFinite(const ModelBinding& binding, const std::vector<double>& squares,
                                    const std::string& task, int64_t global_step);

// Computes the factor for each variable's gradient; empty: 1 for all.
void FindClipScales(const ModelBinding& binding, const std::vector<double>& squares, std::vector<double>& scales);

}  // namespace muster
