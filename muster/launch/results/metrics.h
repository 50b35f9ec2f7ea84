// The results an experiment has left in its OUTPUT_DIR: of each folder below it the last value of each scalar in
// TensorBoard event files (by the time it was written), the last line of metrics.jsonl, and metrics.json, objects of
// numbers, of which what comes later here wins. Blocking. Stateless.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace muster {

struct ResultMetric {
  double value = 0;
  int64_t step = -1;  // -1: not said

  bool operator==(const ResultMetric&) const = default;
};

// By name: a scalar's tag, or a member; "eval/accuracy" for those of the folder eval. "global_step" and "step" of an
// object are the step of its numbers, "wall_time" is none. Broken files are read as far as they are whole; what can't
// be read isn't there.
std::map<std::string, ResultMetric> ReadMetrics(const std::string& output_dir);

}  // namespace muster
