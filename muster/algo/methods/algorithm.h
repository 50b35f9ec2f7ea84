// One way to combine the workers' updates, one step at a time. Algorithms talk to a GradientSource above and a
// StoreClient below; they know neither torch nor sockets. Used by the training thread.
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

  // The model that the algorithm trains, bound to the client by the session before the first step.
  virtual GradientSource& source() = 0;
  virtual const ModelBinding& binding() const = 0;

  // False: every worker has a store of its own, and the cluster has no ps.
  virtual bool trains_on_ps() const { return true; }

  // Minibatches that an update of this worker is made of: the global step stands still meanwhile.
  virtual uint32_t window() const { return 1; }

  // Without ps: the chief's store has the model, initialised or restored; the others' get it now. Blocks.
  [[nodiscard]] virtual absl::Status ShareModel(StoreClient& client) {
    static_cast<void>(client);
    return absl::OkStatus();
  }

  // There is a model, and the client knows who applies its updates. The session calls it, then pulls.
  virtual void Begin(StoreClient& client) { static_cast<void>(client); }

  // One minibatch of this worker. Errors: those of the source and of StoreClient.
  virtual absl::StatusOr<StepResult> Step(StoreClient& client) = 0;

  // The session ends in order: no step follows.
  virtual void End() {}

  // Between two steps: a step's work isn't over and goes on; nobody else may use the client until Settle.
  virtual bool busy() const { return false; }
  // Ends what is under way. The session calls it before it uses the client itself, and at the end. Errors: as Step's.
  [[nodiscard]] virtual absl::Status Settle(StoreClient& client) {
    static_cast<void>(client);
    return absl::OkStatus();
  }

  // Where a step's gradients can be looked at.
  GradientTap& gradient_tap() { return gradient_tap_; }

 private:
  GradientTap gradient_tap_;
};

}  // namespace muster
