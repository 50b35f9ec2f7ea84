// Does something around each checkpoint: evaluates it, copies it away (TensorFlow's CheckpointSaverListener,
// python/training/basic_session_run_hooks.py). Called by CheckpointSaver, in the session's thread.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "muster/train/hook_api/session_hook.h"

namespace muster {

enum class AfterSaving { kContinue, kStop };

class CheckpointSaverListener {
 public:
  virtual ~CheckpointSaverListener() = default;
  // Called with the hook's Begin.
  [[nodiscard]] virtual absl::Status Begin() { return absl::OkStatus(); }
  // Called before a save at `global_step`, the session's current step. A save that fails is retried at a later step:
  // this is then called again, without an AfterSave before it.
  [[nodiscard]] virtual absl::Status BeforeSave(const SessionContext&, int64_t global_step) {
    static_cast<void>(global_step);
    return absl::OkStatus();
  }
  // Called when the checkpoint is written. kStop: the session stops after this run; after the saves at the creation and
  // at the end it has the same effect as kContinue.
  virtual absl::StatusOr<AfterSaving> AfterSave(const SessionContext&, int64_t global_step) {
    static_cast<void>(global_step);
    return AfterSaving::kContinue;
  }
  // Called with the hook's End, after the last checkpoint.
  [[nodiscard]] virtual absl::Status End(const SessionContext&, int64_t global_step) {
    static_cast<void>(global_step);
    return absl::OkStatus();
  }
};

}  // namespace muster
