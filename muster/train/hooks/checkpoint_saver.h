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

// The chief: saves when the session was created, then every `save_steps` or `save_interval` (exactly one), at the end
// if the last step isn't saved yet, and at once when the last checkpoint was deleted.
//
// A save that fails because of its files (Saver::IsWorthARetry) doesn't end training: one line says why, and when it is
// tried again, after 5 s, 10 s and so on (at most a minute, or `save_interval`). A first save that can never work is an
// error, and so is the last one if it still fails after `last_save_patience`: the error says which steps are lost.
struct CheckpointSaverOptions {
  std::optional<int64_t> save_steps;
  std::optional<absl::Duration> save_interval;
  std::vector<std::shared_ptr<CheckpointSaverListener>> listeners = {};
  absl::Duration last_save_patience = absl::Seconds(60);
};
std::shared_ptr<SessionHook> CheckpointSaver(const CheckpointSaverOptions& options);

}  // namespace muster
