// What happens around the steps of a session: logging, saving, stopping. The semantics are those of TensorFlow's
// SessionRunHook (python/training/session_run_hook.py). Hooks of a session are called by the training thread, in the
// order in which they were given.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/summary/event_file_writer.h"
#include "muster/summary/step_summaries.h"

namespace muster {

class Saver;

// What a session offers its hooks; valid for the call only.
struct SessionContext {
  bool is_chief = false;
  absl::Time now;
  int64_t global_step = 0;               // as this process saw it last
  Saver* saver = nullptr;                // the chief's, if there is a checkpoint_dir
  EventFileWriter* summaries = nullptr;  // the chief's, if there is a summary_dir
  // The session runs no more step. In a run, RunContext's is the way.
  std::function<void()> request_stop = [] {};
};

// What one run gave.
struct RunValues {
  double loss = 0;
  int64_t global_step = 0;
  uint64_t staleness = 0;
  std::vector<std::pair<std::string, double>> scalars;  // what the program registered
  // All that it registered; for the call only. Null where there is no session around the run.
  const StepSummaries* summaries = nullptr;

  // "loss", "global_step" (or "step"), "staleness" or a scalar's name; nullptr-like: false if there is none.
  bool Find(const std::string& name, double* value) const;
};

class RunContext {
 public:
  explicit RunContext(SessionContext session) : session_(session) {}
  const SessionContext& session() const { return session_; }
  // The session stops after all hooks' AfterRun.
  void RequestStop() { stop_requested_ = true; }
  bool stop_requested() const { return stop_requested_; }
  // In BeforeRun: this run's histograms, images and texts will be written, so they are to be made. (Scalars always
  // are.)
  void WantSummaries() { summaries_wanted_ = true; }
  bool summaries_wanted() const { return summaries_wanted_; }

 private:
  const SessionContext session_;
  bool stop_requested_ = false;
  bool summaries_wanted_ = false;
};

class SessionHook {
 public:
  virtual ~SessionHook() = default;
  // Once, before the session is created.
  [[nodiscard]] virtual absl::Status Begin() { return absl::OkStatus(); }
  // After it was created, and again after every recovery.
  [[nodiscard]] virtual absl::Status AfterCreateSession(const SessionContext&) { return absl::OkStatus(); }
  [[nodiscard]] virtual absl::Status BeforeRun(RunContext&) { return absl::OkStatus(); }
  // Not called when the run failed.
  [[nodiscard]] virtual absl::Status AfterRun(RunContext&, const RunValues&) { return absl::OkStatus(); }
  // Once, when the session ends without an error.
  [[nodiscard]] virtual absl::Status End(const SessionContext&) { return absl::OkStatus(); }
};

}  // namespace muster
