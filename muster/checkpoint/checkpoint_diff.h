// What differs between two checkpoints as states of training: variables, slots and step counters by value, whatever
// parts and slices they lie in; global step, rule, extras. Not who saved them, when, and onto how many ps. Read in
// pieces of a fixed size. Thread-safe as far as the readers are.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/checkpoint/checkpoint_reader.h"

namespace muster {

struct DiffOptions {
  double tolerance = 0;  // values (not counters) at most so far apart are equal
};

// One line a difference, none if they are equal. Two NaN are equal, as are 0 and -0. DataLoss: one can't be read.
absl::StatusOr<std::vector<std::string>> DiffCheckpoints(const CheckpointReader& a, const CheckpointReader& b,
                                                         const DiffOptions& options = {});

}  // namespace muster
