// Statistics of the values of one variable or slot of a checkpoint, read in pieces: they show whether it has diverged,
// or hasn't moved at all. As thread-safe as the reader.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "muster/checkpoint/checkpoint_reader.h"

namespace muster {

struct TensorStatistics {
  int64_t values = 0;
  int64_t nans = 0;
  // These ignore NaN; all are 0 if no value is a number.
  double min = 0;
  double max = 0;
  double mean = 0;
  double norm = 0;  // Euclidean
};

// Covers the variable, or the slot if one is named (for a counter: one value per stripe). NotFound, DataLoss.
absl::StatusOr<TensorStatistics> StatisticsOf(const CheckpointReader& checkpoint, const std::string& variable,
                                              const std::string& slot = "");

}  // namespace muster
