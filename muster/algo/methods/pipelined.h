// Asynchronous training one step stale: while a worker computes a minibatch, the gradients of the one before are pushed
// and the values for the next one are pulled, on a thread of their own. So minibatch t is computed from values that
// hold this worker's updates up to t - 2 (those of others as they come), and sending costs nothing as long as it takes
// no longer than computing. The first minibatch, and the first one after Settle, is computed from the newest values.
//
// With one worker it is θ(t+1) = θ(t) - η ∇f(θ(t-1)), gradient descent with a delay of one (Zinkevich et al. 2009,
// "Slow learners are fast"): stable for half the learning rates at most, so choose a smaller one if it oscillates. (The
// thread pays where there is a core for it.) For models with tables of rows nothing runs beside the computation, whose
// look-ups need the client.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "muster/algo/methods/algorithm.h"
#include "muster/algo/sources/table_rows.h"
#include "muster/base/background_thread.h"
#include "muster/base/mutex.h"
#include "muster/store/client/overlapped_push.h"
#include "muster/store/client/value_set.h"

namespace muster {

struct PipelinedOptions {
  // False: everything happens in Step, to the same effect but for the time; for simulated worlds.
  bool thread = true;
};

class PipelinedAlgorithm final : public Algorithm {
 public:
  // `source` must outlive it.
  PipelinedAlgorithm(GradientSource& source, PlacementResult placement, const OptimizerSpec& optimizer,
                     const PipelinedOptions& options = {});
  // Waits for the push that is under way.
  ~PipelinedAlgorithm() override;

  GradientSource& source() override { return source_; }
  const ModelBinding& binding() const override { return binding_; }
  // The pipeline is empty: what was under way is forgotten, for the values are other ones.
  void Begin(StoreClient& client) override;
  // The result's loss is this minibatch's. Its global_step counts the update that has just been sent, its staleness is
  // that of the one before; errors may be of that one, too, and then this minibatch is lost with it.
  absl::StatusOr<StepResult> Step(StoreClient& client) override;
  // Waits for the push that is under way. The source's values are the newest then.
  [[nodiscard]] absl::Status Settle(StoreClient& client) override;
  bool busy() const override { return pending_; }

 private:
  void MakeMemory();
  // The source computes with that set from now on.
  void ComputeWith(int set);
  void KeepGradients();
  void StartPush(StoreClient& client, bool in_step);
  absl::StatusOr<StorePushResult> Push(StoreClient& client);
  // With pending_: what came of the push, which is over.
  absl::StatusOr<StorePushResult> AwaitPush();

  GradientSource& source_;
  const PipelinedOptions options_;
  bool has_tables_ = false;
  ModelBinding binding_;
  TableRows tables_{source_};
  std::shared_ptr<std::vector<std::byte>> memory_[2];  // of the trainable variables
  ValueSet sets_[2];
  std::vector<bool> moved_;                      // by variable: the source computes in the sets themselves
  std::vector<std::vector<std::byte>> buffers_;  // by variable: as they are when they are published; or empty
  std::vector<std::vector<std::byte>> copies_;   // of gradients that the source doesn't keep
  std::vector<ByteSpan> gradients_;              // of the push that is under way
  int compute_ = 0;                              // the set that the source computes with
  bool pending_ = false;                         // a push was started and not awaited
  bool publish_buffers_ = false;

  Mutex mutex_;
  CondVar over_;
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  // Of the push, for who has seen that it isn't running any more.
  absl::StatusOr<StorePushResult> pushed_ = StorePushResult{};
  std::optional<OverlappedPush> parts_;
  std::unique_ptr<BackgroundThread> thread_;  // last: ends first
};

}  // namespace muster
