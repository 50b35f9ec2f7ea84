// What happens around the steps of a session: logging, saving, stopping. The semantics are those of TensorFlow's
// SessionRunHook (python/training/session_run_hook.py). Hooks of a session are called by the training thread, in the
// order in which they were given. What a hook throws is caught, and is an error as a Status that it returns: a
// muster::Error with its own status, another exception as Internal with its text.
#pragma once

#include <any>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/algo/sources/gradient_tap.h"
#include "muster/summary/event_file_writer.h"
#include "muster/summary/step_summaries.h"
#include "muster/train/hook/feeds.h"

namespace muster {

class Algorithm;
class Coordinator;
class EventLoop;
class FileSystem;
class Saver;
class StoreClient;
class Tracer;

// What a session offers its hooks; valid for the call only.
struct SessionContext {
  bool is_chief = false;
  absl::Time now;
  int64_t global_step = 0;               // as this process saw it last
  Saver* saver = nullptr;                // the chief's, if there is a checkpoint_dir
  EventFileWriter* summaries = nullptr;  // the chief's, if there is a summary_dir
  // Of the session's threads. They are ended, and have to be started again, before every AfterCreateSession.
  Coordinator* coordinator = nullptr;
  // The session runs no more step. In a run, RunContext's is the way.
  std::function<void()> request_stop = [] {};
  // Ctrl-C or SIGTERM has come, or the scheduler's notice: who waits, waits no more.
  std::function<bool()> stop_requested = [] { return false; };
  // What the session stands on.
  Algorithm* algorithm = nullptr;  // what is trained, and how
  StoreClient* client = nullptr;  // in AfterCreateSession, in the first run's BeforeRun and in End nothing is under way
  EventLoop* loop = nullptr;      // the only place to wait in
  FileSystem* files = nullptr;
  Tracer* tracer = nullptr;  // null: nothing can be recorded
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
  // What it finds, for people.
  std::vector<std::string> Names() const;
};

// Of one run, for all its hooks' BeforeRun and AfterRun.
class RunContext {
 public:
  explicit RunContext(SessionContext session) : session_(std::move(session)) {}
  const SessionContext& session() const { return session_; }
  // The session stops after all hooks' AfterRun.
  void RequestStop() { stop_requested_ = true; }
  bool stop_requested() const { return stop_requested_; }
  // In BeforeRun: this run's histograms, images and texts will be written, so they are to be made. (Scalars always
  // are.)
  void WantSummaries() { summaries_wanted_ = true; }
  bool summaries_wanted() const { return summaries_wanted_; }

  // In BeforeRun. A value that the step reads with Session::Fed. AlreadyExists: another hook has fed one of this name.
  [[nodiscard]] absl::Status Feed(const std::string& name, std::any value) {
    return feeds_.Add(name, std::move(value));
  }
  // In BeforeRun: `observer` is shown the gradients of this run.
  void ObserveGradients(GradientObserver observer) { observers_.push_back(std::move(observer)); }

  // For the session.
  Feeds TakeFeeds() { return std::move(feeds_); }
  const std::vector<GradientObserver>& gradient_observers() const { return observers_; }
  // The step is made: what AfterRun finds in session().
  void MoveTo(int64_t global_step, absl::Time now) {
    session_.global_step = global_step;
    session_.now = now;
  }

 private:
  SessionContext session_;
  Feeds feeds_;
  std::vector<GradientObserver> observers_;
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
