// The status of a task that trains (or waits to, or evaluates): as JSON, for people, and for Prometheus. Keys and
// metrics: docs/observe.md. Thread-safe.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/observe/track.h"
#include "muster/train/watch/training_metrics.h"

namespace muster {

// All pointers are borrowed.
struct TrainingView {
  std::string task;
  const TrainingMetrics* metrics = nullptr;
  const Track* track = nullptr;
  const Clock* clock = nullptr;
  absl::Time started;
};

std::string TrainingStatusJson(const TrainingView& view);
// Makes the text for people from the JSON. InvalidArgument: it isn't such JSON.
absl::StatusOr<std::string> TrainingStatusText(const std::string& json);
std::string TrainingMetricsText(const TrainingView& view);

}  // namespace muster
