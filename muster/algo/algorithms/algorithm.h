// One way to combine the workers' updates, one step at a time. An algorithm calls a GradientSource above it and a
// StoreClient below it; it knows neither torch nor sockets. Used by the training thread.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "muster/algo/sources/gradient_source.h"
#include "muster/algo/sources/gradient_tap.h"
#include "muster/store/client/store_client.h"

namespace muster {

struct StepResult {
  double loss = 0;          // of this worker's minibatch
  int64_t global_step = 0;  // after this step's update
  uint64_t staleness = 0;   // updates of others between the pull and the push of this step
};

class Algorithm {
 public:
  virtual ~Algorithm() = default;

  // The model that the algorithm trains. The session binds it to the client before the first step.
  virtual GradientSource& source() = 0;
  virtual const ModelBinding& binding() const = 0;

  // False: every worker has a store of its own, and the cluster has no ps.
  virtual bool trains_on_ps() const { return true; }

  // Number of minibatches in one update of this worker. The global step doesn't change within them.
  virtual uint32_t window() const { return 1; }

  // For a cluster without ps: copies the chief's model, initialised or restored, to the other workers' stores. Blocks.
  [[nodiscard]] virtual absl::Status ShareModel(StoreClient& client) {
    static_cast<void>(client);
    return absl::OkStatus();
  }

  // Called by the session before it pulls: the model exists and the client knows who applies its updates.
  virtual void Begin(StoreClient& client) { static_cast<void>(client); }

  // Runs one minibatch of this worker. Errors: those of the source and of StoreClient.
  virtual absl::StatusOr<StepResult> Step(StoreClient& client) = 0;

  // Called when the session ends in order: no step follows.
  virtual void End() {}

  // True if a step's work goes on after Step has returned. Until FinishPending nothing else may use the client.
  virtual bool busy() const { return false; }
  // Finishes such work. The session calls it before it uses the client itself, and at the end. Errors: as Step's.
  [[nodiscard]] virtual absl::Status FinishPending(StoreClient& client) {
    static_cast<void>(client);
    return absl::OkStatus();
  }

  // Shows each step's gradients to observers.
  GradientTap& gradient_tap() { return gradient_tap_; }

 private:
  GradientTap gradient_tap_;
};

}  // namespace muster
