// Updates a session's TrainingMetrics: what costs next to nothing after each step, the rest ten times a second. Used by
// the training thread.
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "muster/algo/algorithms/algorithm.h"
#include "muster/base/clock.h"
#include "muster/store/client/store_client.h"
#include "muster/train/saving/saver.h"
#include "muster/train/watch/link_notice.h"
#include "muster/train/watch/training_metrics.h"

namespace muster {

class StepWatch {
 public:
  // All borrowed for its life; if `metrics` is null, nothing is recorded.
  StepWatch(TrainingMetrics* metrics, const StoreClient& client, const Clock& clock);

  void Is(TrainingState state);
  // Counts a finished step. `saver`: the chief's; null if there is none.
  void Count(const StepResult& result, const Saver* saver);

 private:
  void Publish(const Saver* saver);
  void PublishSaver(const Saver& saver);
  void CheckTraffic();
  void CheckLinks();

  TrainingMetrics* const metrics_;
  const StoreClient& client_;
  const Clock& clock_;
  LinkNotice notice_;
  absl::Time published_ = absl::InfinitePast();
  // The start of the interval over which the rate is measured.
  absl::Time rate_since_ = absl::InfinitePast();
  uint64_t rate_steps_ = 0;
};

}  // namespace muster
