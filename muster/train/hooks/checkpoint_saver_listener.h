// Who wants to do something around each checkpoint: evaluate it, copy it away (TensorFlow's CheckpointSaverListener,
// python/training/basic_session_run_hooks.py). Called by CheckpointSaver, in the session's thread.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "muster/train/hook/session_hook.h"

namespace muster {

enum class AfterSaving { kGoOn, kStop };

class CheckpointSaverListener {
 public:
  virtual ~CheckpointSaverListener() = default;
  // With the hook's Begin.
  [[nodiscard]] virtual absl::Status Begin() { return absl::OkStatus(); }
  // `global_step`: the one that the session is at. What can't be saved now is tried again at a later step: then this is
  // called again, without an AfterSave between.
  [[nodiscard]] virtual absl::Status BeforeSave(const SessionContext&, int64_t global_step) {
    static_cast<void>(global_step);
    return absl::OkStatus();
  }
  // The checkpoint is there. kStop: the session shall stop after this run; after the saves at the creation and at the
  // end it is the same as kGoOn.
  virtual absl::StatusOr<AfterSaving> AfterSave(const SessionContext&, int64_t global_step) {
    static_cast<void>(global_step);
    return AfterSaving::kGoOn;
  }
  // With the hook's End, after the last checkpoint.
  [[nodiscard]] virtual absl::Status End(const SessionContext&, int64_t global_step) {
    static_cast<void>(global_step);
    return absl::OkStatus();
  }
};

}  // namespace muster
