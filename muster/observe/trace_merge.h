// Merges the parts of all tasks into one trace on one clock, that of ps 0 (docs/observe.md explains how the clocks are
// aligned). Parts of killed tasks are as good as others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/base/files/file_system.h"
#include "muster/observe/trace_part.h"

namespace muster {

struct MergedTask {
  std::string task;         // "worker:1", or "worker:1 (life 2)"
  int64_t offset = 0;       // nanoseconds added to its events' times to reach the common clock
  int64_t uncertainty = 0;  // the largest error of `offset`; -1: its clock is unknown
  bool measured = false;    // false: on the same host, so the clock is the same
  size_t events = 0;
  bool ended = false;  // it closed its part; false: it was killed
  uint64_t left_out = 0;
};

// The offset between a part's clock and the common one, interpolated linearly between two measurements.
class ClockAlignment {
 public:
  // `common_host`: the host whose clock is the common one; empty: unknown.
  ClockAlignment(const TracePart& part, const std::string& common_host);
  int64_t OffsetAt(int64_t nanos) const;
  int64_t uncertainty() const { return uncertainty_; }
  bool measured() const { return !samples_.empty(); }

 private:
  std::vector<ClockSample> samples_;  // empty: the clocks are the same, or nothing is known
  int64_t uncertainty_ = 0;
};

// Writes `output` from the files `parts`. Times begin at 0 with the first event. InvalidArgument: a file isn't a part,
// or there are none.
absl::StatusOr<std::vector<MergedTask>> MergeTrace(FileSystem& files, const std::vector<std::string>& parts,
                                                   const std::string& output);

}  // namespace muster
