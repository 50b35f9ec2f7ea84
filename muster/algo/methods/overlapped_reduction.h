// The mean of all workers' gradients, bucket by bucket, begun while other gradients are still computed
// (docs/collectives.md, "Training without ps"). All ranks take the same buckets in the same order, whatever order their
// gradients come in: that in which they came to rank 0 in the first minibatch, which tells the others. So ranks can't
// mismatch, and what is added up by whom, hence every bit of the result, doesn't depend on when it happens.
//
// A variable without part in one worker's minibatch may have had part in another's: it goes as zeros. In front of the
// gradients of a bucket goes a number for each, 1 if this worker has it; where their mean is 0, nobody has.
//
// Used by the training thread; the thread that kBeside adds is inside.
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
  kAuto,    // kBeside where there are two processors for each worker of the host, else kWithin
  kAfter,   // when the minibatch is computed
  kWithin,  // as soon as it is complete, by the training thread, which computes on then
  kBeside,  // as soon as it is complete, by a thread of its own, while the training thread computes
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

  // A minibatch begins. What the training thread does for the group is recorded on its track; null: nowhere.
  void Begin(Track* track);
  // gradient(variable) of the source is final. At most once a minibatch and variable.
  void Ready(size_t variable);
  // The minibatch is computed: averages the rest, and waits. Errors of Collective.
  [[nodiscard]] absl::Status Finish();
  // There will be no rest. True: nothing had been averaged, and a new minibatch may begin. False: the group is out of
  // step.
  bool Abandon();

  // After Finish, until the source's next minibatch: empty if nobody has a gradient of it.
  ByteSpan mean(size_t variable) const;

 private:
  struct Bucket {
    GradientBucket plan;
    std::vector<std::byte> presence;  // an element of the bucket's type for each variable
    Segments in;                      // presence, then a segment for each variable
    MutableSegments out;
    size_t missing = 0;  // variables that haven't come
  };
  struct Place {
    size_t bucket = 0;
    size_t index = 0;
  };

  [[nodiscard]] absl::Status AgreeOnBuckets();
  void Take(size_t variable);
  // The next buckets, as far as they are complete.
  void ReduceComplete(bool beside);
  void Reduce(Bucket& bucket);
  void AwaitThread();

  GradientSource& source_;
  Collective& group_;
  const ReductionOptions options_;
  const std::vector<VariableSpec>& variables_;

  std::vector<uint32_t> announced_;  // of the first minibatch
  std::vector<Bucket> buckets_;      // empty until all have agreed
  std::vector<Place> places_;        // of trainable variables
  std::vector<bool> taken_;
  std::vector<std::vector<std::byte>> own_memory_;  // of means whose gradients' memory isn't ours to overwrite
  size_t next_ = 0;                                 // the bucket whose turn it is
  Track* track_ = nullptr;

  Mutex mutex_;
  CondVar over_;
  size_t running_ ABSL_GUARDED_BY(mutex_) = 0;  // buckets that the thread was given and that aren't over
  // Of this minibatch's buckets: the thread's while it runs, then of who has seen that it doesn't.
  absl::Status status_;
  std::unique_ptr<BackgroundThread> thread_;  // last: ends first
};

}  // namespace muster
