// Averages all workers' gradients bucket by bucket while other gradients are still being computed (docs/collectives.md,
// "Training without ps"). All ranks take the same buckets in the same order, whatever order their gradients come in:
// the order in which they came to rank 0 in the first minibatch, which rank 0 sends to the others. So ranks can't
// mismatch, and the bits of the result don't depend on timing, because who adds up what doesn't.
//
// A variable that one worker's minibatch didn't use may have been used in another's, so its gradient is sent as zeros.
// A bucket begins with one number per gradient, 1 if this worker has it; if their mean is 0, no worker has.
//
// Used by the training thread; kBeside adds an internal thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/algo/sources/gradient_buckets.h"
#include "muster/algo/sources/gradient_source.h"
#include "muster/base/background_thread.h"
#include "muster/base/mutex.h"
#include "muster/collective/collective.h"
#include "muster/observe/track.h"

namespace muster {

// When a bucket is averaged. The result is the same in every bit.
enum class ReduceWhen : uint8_t {
  kAuto,    // kBeside if there are two processors for each worker of the host, else kWithin
  kAfter,   // after the minibatch is computed
  kWithin,  // as soon as it is complete, by the training thread, which then computes on
  kBeside,  // as soon as it is complete, by another thread, while the training thread computes
};

struct ReductionOptions {
  size_t bucket_bytes = size_t{1} << 20;
  ReduceWhen when = ReduceWhen::kWithin;        // not kAuto
  absl::Duration patience = absl::Minutes(30);  // for each bucket
};

class OverlappedReduction {
 public:
  // Both must outlive it.
  OverlappedReduction(GradientSource& source, Collective& group, const ReductionOptions& options);

  // Begins a minibatch. What the training thread does for the group is recorded on `track`, unless that is null.
  void Begin(Track* track);
  // Says that gradient(variable) of the source is final. At most once per minibatch and variable.
  void Ready(size_t variable);
  // Called when the minibatch is computed: averages the remaining buckets and waits. Errors of Collective.
  [[nodiscard]] absl::Status Finish();
  // Gives the minibatch up. True: nothing had been averaged, and a new minibatch may begin. False: the group is out of
  // step.
  bool Abandon();

  // Valid after Finish until the source's next minibatch. Empty if no worker has a gradient of the variable.
  ByteSpan mean(size_t variable) const;

 private:
  struct Bucket {
    GradientBucket plan;
    std::vector<std::byte> presence;  // one element of the bucket's type per variable
    Segments in;                      // presence, then one segment per variable
    MutableSegments out;
    size_t missing = 0;  // variables that haven't come yet
  };
  struct Place {
    size_t bucket = 0;
    size_t index = 0;
  };

  [[nodiscard]] absl::Status AgreeOnBuckets();
  void Take(size_t variable);
  // Averages the next buckets, as far as they are complete.
  void ReduceComplete(bool beside);
  void Reduce(Bucket& bucket);
  void AwaitThread();

  GradientSource& source_;
  Collective& group_;
  const ReductionOptions options_;
  const std::vector<VariableSpec>& variables_;

  std::vector<uint32_t> announced_;  // in the first minibatch
  std::vector<Bucket> buckets_;      // empty until all have agreed
  std::vector<Place> places_;        // of the trainable variables
  std::vector<bool> taken_;
  std::vector<std::vector<std::byte>> own_memory_;  // means for which the gradients' memory may not be overwritten
  size_t next_ = 0;                                 // the next bucket to average
  Track* track_ = nullptr;

  Mutex mutex_;
  CondVar over_;
  size_t running_ ABSL_GUARDED_BY(mutex_) = 0;  // buckets given to the thread and not finished
  // Result of this minibatch's buckets. Owned by the thread while running_ > 0, then by the thread that saw running_ ==
  // 0 under mutex_.
  absl::Status status_;
  std::unique_ptr<BackgroundThread> thread_;  // last: destroyed first
};

}  // namespace muster
