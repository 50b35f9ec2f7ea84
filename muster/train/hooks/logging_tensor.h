// Logs values of the step, with the semantics of TensorFlow's LoggingTensorHook. Used by one session's training thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/train/hook_api/session_hook.h"

namespace muster {

// Logs `loss = 0.5, step = 101 (33.300 sec)` every so many runs of this process or so much time, not both; neither:
// every 100 runs, or with at_end at the end alone.
struct LoggingTensorOptions {
  std::vector<std::string> tensors = {"loss", "step"};  // in this order
  // Instead, with tags of their own, {tag, tensor}: sorted by tag, as TensorFlow does with a dict.
  std::map<std::string, std::string> tagged_tensors = {};
  // Makes the line, instead of all that.
  std::function<std::string(const RunValues&)> formatter = {};
  std::optional<int64_t> every_n_iter;
  std::optional<absl::Duration> every;
  bool at_end = false;  // log the last values when the session ends
};
std::shared_ptr<SessionHook> LoggingTensor(const LoggingTensorOptions& options = {});

}  // namespace muster
