// Reads the results that an experiment left in its OUTPUT_DIR. Each folder below it may have the last value (by writing
// time) of each scalar in TensorBoard event files, the last line of metrics.jsonl, and metrics.json; the latter two are
// objects of numbers. A later one in this list wins. Blocking. Stateless.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace muster {

struct ResultMetric {
  double value = 0;
  int64_t step = -1;  // -1: unknown

  bool operator==(const ResultMetric&) const = default;
};

// Returns metrics by name: a scalar's tag or a member's name; "eval/accuracy" for those of the folder eval.
// "global_step" and "step" of an object are the step of its numbers, "wall_time" is ignored. Broken files are read up
// to the damage; unreadable ones are skipped.
std::map<std::string, ResultMetric> ReadMetrics(const std::string& output_dir);

}  // namespace muster
