// What happens around the steps of a session: logging, saving, stopping. The semantics are those of TensorFlow's
// SessionRunHook (python/training/session_run_hook.py). The training thread calls a session's hooks in the order in
// which they were given. An exception of a hook is caught and counts as a returned Status: a muster::Error's own
// status, Internal with its text for any other exception.
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
#include "muster/train/hook_api/feeds.h"

namespace muster {

class Algorithm;
class Coordinator;
class EventLoop;
class FileSystem;
class Saver;
class StoreClient;
class Tracer;

// What a session offers its hooks; valid during the call only.
struct SessionContext {
  bool is_chief = false;
  absl::Time now;
  int64_t global_step = 0;               // as this process saw it last
  Saver* saver = nullptr;                // the chief's, if there is a checkpoint_dir
  EventFileWriter* summaries = nullptr;  // the chief's, if there is a summary_dir
  // For the session's threads. They are ended before every AfterCreateSession, and must be started again there.
  Coordinator* coordinator = nullptr;
  // Makes the session run no more steps. Within a run, use RunContext's.
  std::function<void()> request_stop = [] {};
  // True once Ctrl-C, SIGTERM or the scheduler's notice has arrived: stop waiting.
  std::function<bool()> stop_requested = [] { return false; };
  // What the session stands on.
  Algorithm* algorithm = nullptr;  // what is trained, and how
  StoreClient* client = nullptr;   // nothing is under way in AfterCreateSession, the first run's BeforeRun and End
  EventLoop* loop = nullptr;       // the only place to wait in
  FileSystem* files = nullptr;
  Tracer* tracer = nullptr;  // null: nothing can be recorded
};

// The results of one run.
struct RunValues {
  double loss = 0;
  int64_t global_step = 0;
  uint64_t staleness = 0;
  std::vector<std::pair<std::string, double>> scalars;  // what the program registered
  // Everything that it registered; valid during the call only. Null if there is no session around the run.
  const StepSummaries* summaries = nullptr;

  // Finds "loss", "global_step" (or "step"), "staleness" or a scalar by its name. Returns false if there is none.
  bool Find(const std::string& name, double* value) const;
  // The names that Find knows, for people.
  std::vector<std::string> Names() const;
};

// One run, shared by all its hooks' BeforeRun and AfterRun.
class RunContext {
 public:
  explicit RunContext(SessionContext session) : session_(std::move(session)) {}
  const SessionContext& session() const { return session_; }
  // Stops the session after all hooks' AfterRun.
  void RequestStop() { stop_requested_ = true; }
  bool stop_requested() const { return stop_requested_; }
  // Call it in BeforeRun: this run's histograms, images and texts will be written, so they must be made. (Scalars
  // always are.)
  void WantSummaries() { summaries_wanted_ = true; }
  bool summaries_wanted() const { return summaries_wanted_; }

  // Call it in BeforeRun. Feeds a value that the step reads with Session::Fed. AlreadyExists: another hook has fed this
  // name.
  [[nodiscard]] absl::Status Feed(const std::string& name, std::any value) {
    return feeds_.Add(name, std::move(value));
  }
  // Call it in BeforeRun. `observer` is shown the gradients of this run.
  void ObserveGradients(GradientObserver observer) { observers_.push_back(std::move(observer)); }

  // For the session.
  Feeds TakeFeeds() { return std::move(feeds_); }
  const std::vector<GradientObserver>& gradient_observers() const { return observers_; }
  // Called after the step: sets what AfterRun finds in session().
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
  // Called once, before the session is created.
  [[nodiscard]] virtual absl::Status Begin() { return absl::OkStatus(); }
  // Called after the session was created, and again after every recovery.
  [[nodiscard]] virtual absl::Status AfterCreateSession(const SessionContext&) { return absl::OkStatus(); }
  [[nodiscard]] virtual absl::Status BeforeRun(RunContext&) { return absl::OkStatus(); }
  // Not called when the run failed.
  [[nodiscard]] virtual absl::Status AfterRun(RunContext&, const RunValues&) { return absl::OkStatus(); }
  // Called after a run that trained nothing (Session::Fetch), for which the two above aren't called: it has neither a
  // loss nor gradients. The context has the global step of that look, and obeys only RequestStop.
  [[nodiscard]] virtual absl::Status AfterFetch(RunContext&) { return absl::OkStatus(); }
  // Called once, when the session ends without an error.
  [[nodiscard]] virtual absl::Status End(const SessionContext&) { return absl::OkStatus(); }
};

}  // namespace muster
