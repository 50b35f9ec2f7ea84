// Which parameter server holds which variable, or which slice of it. Round robin and greedy do exactly what
// TensorFlow's replica_device_setter and GreedyLoadBalancingStrategy(byte_size_load_fn) do; the partitioners are its
// fixed_size, variable_axis_size and min_max_variable partitioners along axis 0. Pure functions, thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/cluster/placement/variable_spec.h"

namespace muster {

enum class Placement {
  kRoundRobin,    // variable (or slice) i on ps i mod N, in order of creation
  kGreedyBySize,  // the ps with the fewest bytes so far, lowest index on ties, in order of creation
  kGreedySorted,  // the same with the variables sorted by bytes first, largest first (ties in order of creation)
};

// How to cut a variable along axis 0. Scalars are never cut.
struct Partitioning {
  enum class Kind { kNone, kFixed, kMaxBytes, kMinSlice };
  Kind kind = Kind::kNone;
  int64_t shards = 1;                   // kFixed: number of slices
  int64_t max_shard_bytes = 0;          // kMaxBytes: variable_axis_size_partitioner(max_shard_bytes, max_shards)
  int64_t max_shards = 0;               // kMaxBytes: 0 is no limit
  int64_t min_slice_bytes = 256 << 10;  // kMinSlice: min_max_variable_partitioner(max_partitions, min_slice_size)
  int64_t max_partitions = 1;           // kMinSlice
};

// One piece of a variable on one ps. It is contiguous, unless it belongs to a table of rows partitioned by kMod.
struct PlacedSlice {
  int variable = 0;  // index into the list of variables
  int shard = 0;     // 0 for a variable that isn't partitioned
  int num_shards = 1;
  int64_t offset = 0;          // first element, in elements of the whole variable
  std::vector<int64_t> shape;  // of the slice
  int64_t elements = 0;
  int64_t bytes = 0;
  int ps = 0;
  int64_t row_step = 1;  // it has every row_step-th row of the variable, starting at `offset`
};

struct PlacementResult {
  std::vector<PlacedSlice> slices;  // in order of the variables, then of the shards
  std::vector<int64_t> load_bytes;  // per ps
  // Returns the largest load divided by the mean; 1 is perfectly even, 0 when nothing is placed.
  double imbalance() const;
};

// Returns lines for people, one per ps and one for the whole: bytes, share, number of slices; largest load over mean.
std::string LoadReport(const PlacementResult& placement);

// Places every variable of `variables` on `num_ps` servers. A variable whose `device` names a task of job ps goes there
// and doesn't advance the round robin. Neither does a table of rows, which has a slice on every ps, slice i on ps i,
// whatever the partitioning of the others. InvalidArgument: a table without an axis of rows, num_ps < 1, a device that
// names another job or a ps that doesn't exist, a bad partitioning, a negative extent, sizes that don't fit 64 bits,
// more than a million slices.
absl::StatusOr<PlacementResult> PlaceVariables(const std::vector<VariableSpec>& variables, int num_ps,
                                               Placement placement, const Partitioning& partitioning);

}  // namespace muster
