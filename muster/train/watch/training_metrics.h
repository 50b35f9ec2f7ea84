// A training task's own metrics: the session writes them, the status page reads them. Thread-safe.
#pragma once

#include "muster/observe/histogram.h"
#include "muster/observe/metric.h"
#include "muster/train/watch/ps_links.h"
#include "muster/train/watch/shared_text.h"

namespace muster {

struct TrainingMetrics {
  Counter steps;  // of this process: one per minibatch
  Gauge global_step;
  Gauge loss;
  Gauge steps_per_second;  // over the last second or more
  Histogram staleness{{0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64}};
  Counter bytes_sent;
  Counter bytes_received;
  Gauge applies_own_updates;      // 1: this task applies its updates in the memory of the ps
  Gauge checkpoint_saved_at;      // of the chief: when the newest was begun, Unix seconds; 0: none yet
  Counter checkpoint_failures;    // saves that failed
  SharedText checkpoint_failure;  // why the last one has; empty: it hasn't
  Gauge state;                    // a TrainingState
  PsLinks links;
};

enum class TrainingState { kStarting, kTraining, kEnded, kEvaluating };

}  // namespace muster
