// Asynchronous training one step stale: while a worker computes a minibatch, a second thread pushes the gradients of
// the previous one and pulls the values for the next one. So minibatch t is computed from values that hold this
// worker's updates up to t - 2 (and those of others as they come), and communication costs nothing as long as it takes
// no longer than computing. The first minibatch, and the first one after FinishPending, are computed from the newest
// values.
//
// With one worker this is θ(t+1) = θ(t) - η ∇f(θ(t-1)), gradient descent with a delay of one (Zinkevich et al. 2009,
// "Slow learners are fast"). It is stable for at most half the learning rates, so choose a smaller one if it
// oscillates. (The thread pays off only if there is a core for it.) For models with tables of rows nothing runs beside
// the computation, because its look-ups need the client.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "muster/algo/algorithms/algorithm.h"
#include "muster/algo/sources/table_rows.h"
#include "muster/base/background_thread.h"
#include "muster/base/mutex.h"
#include "muster/store/client/overlapped_push.h"
#include "muster/store/client/value_set.h"

namespace muster {

struct PipelinedOptions {
  // False: everything happens in Step, with the same results but no time saved; for simulated worlds.
  bool thread = true;
};

class PipelinedAlgorithm final : public Algorithm {
 public:
  // `source` must outlive it.
  PipelinedAlgorithm(GradientSource& source, PlacementResult placement, const OptimizerSpec& optimizer,
                     const PipelinedOptions& options = {});
  // Waits for the push in flight.
  ~PipelinedAlgorithm() override;

  GradientSource& source() override { return source_; }
  const ModelBinding& binding() const override { return binding_; }
  // Empties the pipeline: forgets a push in flight, because the values have been replaced.
  void Begin(StoreClient& client) override;
  // The result's loss is this minibatch's. Its global_step counts the update just sent; its staleness is that of the
  // previous one. Errors may be of the previous one, too; then this minibatch is lost with it.
  absl::StatusOr<StepResult> Step(StoreClient& client) override;
  // Waits for the push in flight. Afterwards the source has the newest values.
  [[nodiscard]] absl::Status FinishPending(StoreClient& client) override;
  bool busy() const override { return pending_; }

 private:
  void MakeMemory();
  // Makes the source compute with that set.
  void ComputeWith(int set);
  void KeepGradients();
  void StartPush(StoreClient& client, bool in_step);
  absl::StatusOr<StorePushResult> Push(StoreClient& client);
  // Requires pending_. Waits for the push and returns its result.
  absl::StatusOr<StorePushResult> AwaitPush();

  GradientSource& source_;
  const PipelinedOptions options_;
  bool has_tables_ = false;
  ModelBinding binding_;
  TableRows tables_{source_};
  std::shared_ptr<std::vector<std::byte>> memory_[2];  // of the trainable variables
  ValueSet sets_[2];
  std::vector<bool> moved_;                      // by variable: the source computes in the sets directly
  std::vector<std::vector<std::byte>> buffers_;  // by variable: copies of buffers to publish; or empty
  std::vector<std::vector<std::byte>> copies_;   // of gradients whose memory the source doesn't keep
  std::vector<ByteSpan> gradients_;              // of the push in flight
  int compute_ = 0;                              // the set that the source computes with
  bool pending_ = false;                         // a push was started and not awaited
  bool publish_buffers_ = false;

  Mutex mutex_;
  CondVar over_;
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  // The push's result; may be read once running_ was seen to be false.
  absl::StatusOr<StorePushResult> pushed_ = StorePushResult{};
  std::optional<OverlappedPush> parts_;
  std::unique_ptr<BackgroundThread> thread_;  // last: ends first
};

}  // namespace muster
