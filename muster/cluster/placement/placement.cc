#include "muster/cluster/placement/placement.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "muster/base/status_macros.h"
#include "muster/cluster/device.h"
#include "muster/cluster/quoted.h"
#include "muster/cluster/task_id.h"

namespace muster {
namespace {

// Far above any model's numbers; the limit keeps a typing error in a partitioning from taking all memory.
constexpr int64_t kMaxSlices = 1'000'000;
constexpr int kMaxPs = 10'000;

absl::Status Validate(const Partitioning& partitioning) {
  using Kind = Partitioning::Kind;
  if (partitioning.kind == Kind::kFixed && partitioning.shards < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("fixed partitioning into ", partitioning.shards, " shards; accepted: 1 and more"));
  }
  if (partitioning.kind == Kind::kMaxBytes && (partitioning.max_shard_bytes < 1 || partitioning.max_shards < 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("partitioning into shards of at most ", partitioning.max_shard_bytes, " bytes, at most ",
                     partitioning.max_shards, " of them; accepted: 1 byte and more, 0 (no limit) shards and more"));
  }
  if (partitioning.kind == Kind::kMinSlice && (partitioning.min_slice_bytes < 1 || partitioning.max_partitions < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("partitioning into slices of at least ", partitioning.min_slice_bytes, " bytes, at most ",
                     partitioning.max_partitions, " of them; accepted: 1 and more for both"));
  }
  return absl::OkStatus();
}

// Checks that elements and bytes fit 64 bits and that no extent is negative.
absl::Status Validate(const VariableSpec& variable) {
  if (variable.kind == VariableKind::kRows && variable.shape.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("variable ", Quoted(variable.name), ": a scalar is no table of rows; accepted: [rows, ...]"));
  }
  int64_t bytes = static_cast<int64_t>(DTypeSize(variable.dtype));
  for (int64_t extent : variable.shape) {
    if (extent < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("variable ", Quoted(variable.name), ": extent ", extent, " in its shape; accepted: 0 and more"));
    }
    // Skips zero extents, so that elements() can't overflow on its way to zero either.
    if (extent > 0 && __builtin_mul_overflow(bytes, extent, &bytes)) {
      return absl::InvalidArgumentError(
          absl::StrCat("variable ", Quoted(variable.name), ": its shape has more bytes than 64 bits can count"));
    }
  }
  return absl::OkStatus();
}

int64_t CeilDivide(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

// Returns the number of slices along axis 0. The names are TensorFlow's
// (tensorflow/python/ops/partitioned_variables.py). TensorFlow computes in floating point and fails on an empty
// variable; this is exact, and an empty variable is one slice.
int64_t NumShards(const VariableSpec& variable, const Partitioning& partitioning) {
  if (variable.shape.empty() || variable.elements() == 0) return 1;
  int64_t rows = variable.shape[0];
  int64_t bytes = variable.bytes();
  switch (partitioning.kind) {
    case Partitioning::Kind::kNone:
      return 1;
    case Partitioning::Kind::kFixed:  // fixed_size_partitioner
      return std::min(partitioning.shards, rows);
    case Partitioning::Kind::kMaxBytes: {  // variable_axis_size_partitioner
      int64_t rows_per_shard = std::max<int64_t>(1, partitioning.max_shard_bytes / (bytes / rows));
      int64_t shards = CeilDivide(rows, rows_per_shard);
      return partitioning.max_shards > 0 ? std::min(partitioning.max_shards, shards) : shards;
    }
    case Partitioning::Kind::kMinSlice:  // min_max_variable_partitioner
      return std::max<int64_t>(
          1, std::min({rows, partitioning.max_partitions, CeilDivide(bytes, partitioning.min_slice_bytes)}));
  }
  return 1;
}

// The first rows % shards slices get one row more.
void Cut(const VariableSpec& variable, int index, int64_t shards, std::vector<PlacedSlice>& slices) {
  int64_t rows = variable.shape.empty() ? 1 : variable.shape[0];
  int64_t row_elements = rows == 0 ? 0 : variable.elements() / rows;
  int64_t row = 0;
  for (int64_t shard = 0; shard < shards; ++shard) {
    int64_t count = rows / shards + (shard < rows % shards ? 1 : 0);
    PlacedSlice slice{.variable = index,
                      .shard = static_cast<int>(shard),
                      .num_shards = static_cast<int>(shards),
                      .offset = row * row_elements,
                      .shape = variable.shape,
                      .elements = count * row_elements};
    if (!slice.shape.empty()) slice.shape[0] = count;
    slice.bytes = slice.elements * static_cast<int64_t>(DTypeSize(variable.dtype));
    slices.push_back(std::move(slice));
    row += count;
  }
}

void CutTable(const VariableSpec& variable, int index, int64_t shards, std::vector<PlacedSlice>& slices) {
  const RowSplit split(variable.table.partition, variable.shape[0], shards);
  for (int64_t shard = 0; shard < shards; ++shard) {
    PlacedSlice slice{.variable = index,
                      .shard = static_cast<int>(shard),
                      .num_shards = static_cast<int>(shards),
                      .offset = split.FirstRowOf(shard) * variable.row_elements(),
                      .shape = variable.shape,
                      .elements = split.RowsOf(shard) * variable.row_elements(),
                      .row_step = split.Step()};
    slice.shape[0] = split.RowsOf(shard);
    slice.bytes = slice.elements * static_cast<int64_t>(DTypeSize(variable.dtype));
    slices.push_back(std::move(slice));
  }
}

// Returns the ps that the variable's own device names, if it names one.
absl::StatusOr<std::optional<int>> PinnedPs(const VariableSpec& variable, int num_ps) {
  ASSIGN_OR_RETURN(DeviceSpec device, DeviceSpec::Parse(variable.device));
  if (device.job && *device.job != kPsJob) {
    return absl::InvalidArgumentError(absl::StrCat("variable ", Quoted(variable.name), ": device ",
                                                   Quoted(variable.device),
                                                   " is not on job ps; accepted: /job:ps. A replica's variables are "
                                                   "shared, and ps hold them; for values of one worker's own use "
                                                   "LocalVariables, or a module that isn't in the replica"));
  }
  if (!device.job || !device.task) return std::optional<int>();
  if (*device.task >= num_ps) {
    return absl::InvalidArgumentError(absl::StrCat("variable ", Quoted(variable.name), ": device ",
                                                   Quoted(variable.device),
                                                   " names a ps that doesn't exist; accepted: task 0 to ", num_ps - 1));
  }
  return device.task;
}

// Returns the order in which the strategy places the slices.
std::vector<size_t> CreationOrder(const std::vector<PlacedSlice>& slices, Placement placement) {
  std::vector<size_t> order(slices.size());
  std::iota(order.begin(), order.end(), 0);
  if (placement == Placement::kGreedySorted) {
    std::stable_sort(order.begin(), order.end(),
                     [&slices](size_t a, size_t b) { return slices[a].bytes > slices[b].bytes; });
  }
  return order;
}

}  // namespace

double PlacementResult::imbalance() const {
  double sum = std::accumulate(load_bytes.begin(), load_bytes.end(), 0.0);
  if (sum == 0) return 0;
  double largest = static_cast<double>(*std::max_element(load_bytes.begin(), load_bytes.end()));
  return largest / (sum / static_cast<double>(load_bytes.size()));
}

std::string LoadReport(const PlacementResult& placement) {
  std::vector<int> slices(placement.load_bytes.size(), 0);
  for (const PlacedSlice& slice : placement.slices) ++slices[slice.ps];
  int64_t sum = std::accumulate(placement.load_bytes.begin(), placement.load_bytes.end(), int64_t{0});
  std::string report;
  for (size_t ps = 0; ps < slices.size(); ++ps) {
    double share = sum == 0 ? 0 : 100.0 * static_cast<double>(placement.load_bytes[ps]) / static_cast<double>(sum);
    absl::StrAppendFormat(&report, "ps:%d %d bytes (%.1f%%) in %d slices\n", ps, placement.load_bytes[ps], share,
                          slices[ps]);
  }
  absl::StrAppendFormat(&report, "max/mean %.3f\n", placement.imbalance());
  return report;
}

absl::StatusOr<PlacementResult> PlaceVariables(const std::vector<VariableSpec>& variables, int num_ps,
                                               Placement placement, const Partitioning& partitioning) {
  if (num_ps < 1 || num_ps > kMaxPs) {
    return absl::InvalidArgumentError(absl::StrCat(num_ps, " parameter servers; accepted: 1 to ", kMaxPs));
  }
  RETURN_IF_ERROR(Validate(partitioning));
  PlacementResult result{.load_bytes = std::vector<int64_t>(num_ps, 0)};
  std::vector<std::optional<int>> pinned;
  int64_t total = 0;
  for (size_t i = 0; i < variables.size(); ++i) {
    RETURN_IF_ERROR(Validate(variables[i]));
    if (__builtin_add_overflow(total, variables[i].bytes(), &total)) {
      return absl::InvalidArgumentError("the variables together have more bytes than 64 bits can count");
    }
    ASSIGN_OR_RETURN(std::optional<int> ps, PinnedPs(variables[i], num_ps));
    pinned.push_back(ps);
    const bool table = variables[i].kind == VariableKind::kRows;
    int64_t shards = table ? (ps ? 1 : num_ps) : NumShards(variables[i], partitioning);
    if (shards + static_cast<int64_t>(result.slices.size()) > kMaxSlices) {
      return absl::InvalidArgumentError(absl::StrCat("the partitioning cuts variable ", Quoted(variables[i].name),
                                                     " into ", shards, " slices; accepted: ", kMaxSlices,
                                                     " of all variables together"));
    }
    if (table) {
      CutTable(variables[i], static_cast<int>(i), shards, result.slices);
    } else {
      Cut(variables[i], static_cast<int>(i), shards, result.slices);
    }
  }

  int next = 0;
  for (size_t i : CreationOrder(result.slices, placement)) {
    PlacedSlice& slice = result.slices[i];
    if (pinned[slice.variable]) {
      slice.ps = *pinned[slice.variable];
    } else if (variables[slice.variable].kind == VariableKind::kRows) {
      slice.ps = slice.shard;
    } else if (placement == Placement::kRoundRobin) {
      slice.ps = next;
      next = (next + 1) % num_ps;
    } else {  // by the real loads, including pinned variables
      auto least = std::min_element(result.load_bytes.begin(), result.load_bytes.end());
      slice.ps = static_cast<int>(least - result.load_bytes.begin());
    }
    result.load_bytes[slice.ps] += slice.bytes;
  }
  return result;
}

}  // namespace muster
