// Compares two checkpoints as states of training: variables, slots and step counters by value, whatever parts and
// slices hold them; global step, rule, extras. Ignores who saved them, when, and on how many ps. Reads in pieces of a
// fixed size. As thread-safe as the readers.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/checkpoint/checkpoint_reader.h"

namespace muster {

struct DiffOptions {
  double tolerance = 0;  // values (not counters) that differ by at most this are equal
};

// Returns one line per difference, none if they are equal. Two NaN are equal, as are 0 and -0. DataLoss: one of them
// can't be read.
absl::StatusOr<std::vector<std::string>> DiffCheckpoints(const CheckpointReader& a, const CheckpointReader& b,
                                                         const DiffOptions& options = {});

}  // namespace muster
