// Traces a few steps of this process, in Chrome's format for chrome://tracing and ui.perfetto.dev (TensorFlow's
// ProfilerHook). The trace shows what the threads did, as docs/observe.md describes it, whether the run as a whole is
// traced or not.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "muster/train/hook_api/session_hook.h"

namespace muster {

// Exactly one of three. `first_step` and `last_step`: this process's runs from the one that may reach the first global
// step to the one that has reached the last, in one file timeline-FIRST-LAST.json, named by the global steps that they
// reached. `save_steps`, `save_interval`: single runs, timeline-STEP.json, every so many global steps or so much time
// after the first run, which isn't recorded.
struct ProfilerOptions {
  std::optional<int64_t> first_step;
  std::optional<int64_t> last_step;
  std::optional<int64_t> save_steps;
  std::optional<absl::Duration> save_interval;
  std::string output_dir;  // created if missing; empty: the current folder
};

// FailedPrecondition when the session is created: it has another Profiler already, and only one can record at a time.
// If a file can't be written, the run fails.
std::shared_ptr<SessionHook> Profiler(const ProfilerOptions& options);

}  // namespace muster
