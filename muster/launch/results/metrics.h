// The results an experiment has left in its OUTPUT_DIR: the last value of each scalar of the TensorBoard event files
// below it, and metrics.json (an object of numbers; wins) or the last line of metrics.jsonl. Blocking. Stateless.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"

namespace muster {

struct Metric {
  double value = 0;
  int64_t step = -1;  // -1: not said
};
// By name: a scalar's tag; "eval/accuracy" for those of a folder below. Broken files are read as far as they are whole.
std::map<std::string, Metric> ReadMetrics(const std::string& output_dir);

}  // namespace muster
