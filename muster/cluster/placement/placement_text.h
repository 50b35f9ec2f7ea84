// The text forms of placement: strategies and partitionings on a command line, variables and results as JSON. Pure
// functions, thread-safe. Errors are InvalidArgument and name the text and what is accepted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/cluster/placement/placement.h"
#include "muster/cluster/placement/variable_spec.h"

namespace muster {

// Accepts "round_robin", "greedy", "greedy_sorted".
absl::StatusOr<Placement> ParsePlacement(std::string_view text);

// Accepts "none", "fixed:N", "max_bytes:B" or "max_bytes:B,max_shards:K", "min_slice:BYTES,max_partitions:K".
absl::StatusOr<Partitioning> ParsePartitioning(std::string_view text);

// Reads [{"name": "w", "shape": [784, 100], "dtype": "float32"}, …]. `what` names the text in messages. Names must be
// unique.
absl::StatusOr<std::vector<VariableSpec>> VariablesFromJson(std::string_view text, std::string_view what);

// Writes {"placement": [{"name": "w", "shard": 0, "ps": 0, "bytes": 313600}, …], "load_bytes": [313600, …]} on one
// line.
std::string PlacementToJson(const std::vector<VariableSpec>& variables, const PlacementResult& placement);

}  // namespace muster
