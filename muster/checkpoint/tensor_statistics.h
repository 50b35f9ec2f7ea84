// What the values of one variable or slot of a checkpoint look like, read in pieces: whether it has diverged, whether
// it has moved at all. Thread-safe as far as the reader is.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "muster/checkpoint/checkpoint_reader.h"

namespace muster {

struct TensorStatistics {
  int64_t values = 0;
  int64_t nans = 0;
  // Of the values that are numbers; all 0 if there is none.
  double min = 0;
  double max = 0;
  double mean = 0;
  double norm = 0;  // Euclidean
};

// Of the variable, or of its slot if one is named (of a counter: one value a stripe). NotFound, DataLoss.
absl::StatusOr<TensorStatistics> StatisticsOf(const CheckpointReader& checkpoint, const std::string& variable,
                                              const std::string& slot = "");

}  // namespace muster
