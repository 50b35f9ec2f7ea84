// Saves checkpoints during training, with the semantics of TensorFlow's CheckpointSaverHook. Used by one session's
// training thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "muster/train/hook_api/session_hook.h"
#include "muster/train/hooks/checkpoint_saver_listener.h"

namespace muster {

// The chief: saves when the session was created, then every `save_steps` or `save_interval` (exactly one), and at the
// end if the last step isn't saved yet.
struct CheckpointSaverOptions {
  std::optional<int64_t> save_steps;
  std::optional<absl::Duration> save_interval;
  std::vector<std::shared_ptr<CheckpointSaverListener>> listeners = {};
};
std::shared_ptr<SessionHook> CheckpointSaver(const CheckpointSaverOptions& options);

}  // namespace muster
