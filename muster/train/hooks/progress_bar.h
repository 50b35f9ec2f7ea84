// Shows how far training is. On a terminal: one line that changes in place,
//    42% [========>           ] 420/1000  12.3 steps/s  ETA 0:47  loss 0.25
// Elsewhere (a file, a pipe, `muster run`): the same without the bar, as a log line now and then.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "absl/time/time.h"
#include "muster/train/hook_api/session_hook.h"

namespace muster {

// Where the bar is drawn. A test passes its own.
struct Terminal {
  bool is_terminal = false;
  std::function<int()> width;  // in columns; asked before each line
  std::function<void(std::string_view)> write;
};
// The process's stderr.
Terminal StandardError();

// The target, in global steps whichever worker makes them: exactly one of `last_step`, and `num_steps` after the step
// at which the session was first created (as StopAtStep). The rate shown is the average since the session was
// (re)created.
struct ProgressBarOptions {
  std::optional<int64_t> last_step;
  std::optional<int64_t> num_steps;
  absl::Duration redraw = absl::Milliseconds(100);  // on a terminal, at most this often
  absl::Duration log_every = absl::Seconds(30);     // elsewhere
  std::optional<Terminal> terminal;                 // unset: StandardError()
};
// On a terminal, the line ends with a newline when the session ends, with or without an error.
std::shared_ptr<SessionHook> ProgressBar(const ProgressBarOptions& options);

}  // namespace muster
