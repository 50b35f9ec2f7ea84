// A training session: runs steps between hooks, recovers, and ends in order; a SessionCreator and the SessionManager
// make its model ready. Keeps the semantics of TensorFlow's MonitoredTrainingSession, MonitoredSession and
// SingularMonitoredSession (python/training/monitored_session.py), torch-free: a step is whatever the Algorithm does.
// The façade's sessions wrap it and turn errors into exceptions. docs/sessions.md describes the life cycle, and what
// happens on errors in each phase.
//
// Used by one thread. Waits only in the event loop of its server, and at its end for its threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/algo/algorithms/algorithm.h"
#include "muster/summary/event_file_writer.h"
#include "muster/train/hook_api/session_environment.h"
#include "muster/train/hook_api/session_hook.h"
#include "muster/train/saving/saver.h"
#include "muster/train/session/scaffold.h"
#include "muster/train/session/session_config.h"
#include "muster/train/session/session_creator.h"
#include "muster/train/session/session_manager.h"
#include "muster/train/session/step_watch.h"
#include "muster/train/threads/coordinator.h"

namespace muster {

struct SessionOptions {
  // Empty, or the server's own Target(). Anything else is an error: a session runs in the process of its server.
  std::string master;
  // The chief initialises, saves and restores. Unset: what the cluster says.
  std::optional<bool> is_chief;
  std::string checkpoint_dir;  // empty: nothing is saved
  std::shared_ptr<Scaffold> scaffold;
  std::string summary_dir;  // empty: checkpoint_dir
  // How often the chief saves. Neither set: every 600 seconds; one set turns the other off; 0 turns it off.
  std::optional<double> save_checkpoint_secs;
  std::optional<int64_t> save_checkpoint_steps;
  // How often the chief writes summaries. Neither set: every 100 steps; likewise.
  std::optional<int64_t> save_summaries_steps;
  std::optional<double> save_summaries_secs;
  SessionConfig config;
  // How long the session's threads may take to stop at the end.
  double stop_grace_period_secs = 120;
  int64_t log_step_count_steps = 100;  // 0: no `global_step/sec`
  double max_wait_secs = 7200;         // for the chief to make the model ready
  int keep_checkpoint_max = 5;
  double keep_checkpoint_every_n_hours = 10000;  // more than 0; see SaverOptions
  bool allow_older_checkpoint = false;           // when the newest is damaged, resume from the newest that isn't
  // How long the last checkpoint is tried again if its files can't be written (CheckpointSaverOptions).
  double last_save_patience_secs = 60;
  std::vector<std::shared_ptr<SessionHook>> chief_only_hooks;
  std::vector<Saveable> saveables;  // kept in checkpoints beside the variables

  // What makes this a MonitoredSession: its creator's scaffold, master, config, checkpoint_dir and is_chief replace
  // those above. Null: a ChiefSessionCreator or a WorkerSessionCreator made from the options above.
  std::shared_ptr<SessionCreator> creator;
  std::string checkpoint_filename_with_path;  // the creator's; see SessionCreatorOptions
  bool default_hooks = true;                  // false: the chief has only the hooks it is given
  bool recovers = true;                       // false: a ps that has lost the model is an error (Aborted)
};

class Session;

// The argument of a step function (TensorFlow's StepContext); valid for one call.
class StepContext {
 public:
  explicit StepContext(Session& session) : session_(session) {}
  // Runs a step that no hook sees.
  absl::StatusOr<StepResult> Run();
  // Runs a step between the hooks. FailedPrecondition: after a stop.
  [[nodiscard]] absl::Status RunWithHooks();
  // Stops the session. Return its result (OutOfRange) from the step function: a clean end.
  [[nodiscard]] absl::Status RequestStop();

 private:
  Session& session_;
};

class Session {
 public:
  Session(SessionEnvironment environment, SessionOptions options, std::vector<std::shared_ptr<SessionHook>> hooks);
  // Destroyed without Close, no hook's End runs, nothing is saved and the ps are not told "done"; but the session's
  // threads are ended, and its summaries are complete.
  ~Session();

  // Blocks until the model is initialised or restored everywhere. Errors: those of StoreClient and Saver;
  // InvalidArgument: options that contradict each other; DeadlineExceeded: max_wait_secs are over.
  [[nodiscard]] absl::Status Start();

  // Also true when a thread of the session asked for it: Close, and a Run before it, return that thread's error.
  bool ShouldStop() const {
    return stop_ || environment_.stop_requested() || (coordinator_.ShouldStop() && !ThreadLostModel());
  }
  void RequestStop() { stop_ = true; }

  // Runs one step between the hooks. FailedPrecondition: after the stop ("Run called even after should_stop
  // requested.") or Close ("Attempted to use a closed Session."), or called within a step of this session, by its loss
  // or a hook; the same holds for RunStepFn, RunRaw, Restore and Close. OutOfRange in the step or in a hook is a clean
  // end: no error, and ShouldStop becomes true. So is training that was ended elsewhere (muster's Shutdown). If a ps
  // has lost the model, or a checkpoint was loaded meanwhile, that is no error either: the chief restores the last
  // checkpoint if need be, AfterCreateSession of the hooks is called again, and the step is run with the new values.
  [[nodiscard]] absl::Status Run();
  // Calls `step_fn`, which runs steps with or without the hooks; otherwise as Run. After a recovery it is called again,
  // from its beginning.
  [[nodiscard]] absl::Status RunStepFn(absl::FunctionRef<absl::Status(StepContext&)> step_fn);
  // Runs a step that no hook sees and that is not recovered (TensorFlow's raw_session): nothing is fed, and its
  // summaries aren't written. FailedPrecondition: after Close, or there never was a session.
  absl::StatusOr<StepResult> RunRaw();

  // A run that trains nothing: calls `fetch` while the model shows what the ps hold now, then gives it back what this
  // worker trains. Adds nothing to global_step, which follows the other workers'. Hooks see AfterFetch; else as Run.
  [[nodiscard]] absl::Status Fetch(absl::FunctionRef<absl::Status()> fetch);
  [[nodiscard]] absl::Status FetchRaw(absl::FunctionRef<absl::Status()> fetch);  // without hooks and recovery

  // On the chief, between two runs: training continues from the checkpoint at `path` ("dir/model.ckpt-100"), on every
  // ps; the workers pull its values with their next step, and global_step follows. On an error everything stays as it
  // was. FailedPrecondition: not the chief; after Close; a checkpoint of another model. NotFound, DataLoss: no
  // checkpoint there, or a damaged one.
  [[nodiscard]] absl::Status Restore(const std::string& path);

  // While the result lives, this worker does `what` instead of training ("evaluating"), and no ps takes it for one that
  // hangs. Checkpoints, and evaluations by train_and_evaluate, do so themselves.
  [[nodiscard]] WorkerProgress::Busy Busy(const std::string& what) {
    return WorkerProgress::Busy(environment_.client->progress(), what);
  }

  // Adds a value of this step for summaries and LoggingTensor; call it inside the step. Other kinds of values:
  // StepSummaries::Current.
  void AddScalar(const std::string& name, double value) { step_summaries_.AddScalar(name, value); }

  // Returns what a hook has fed for this step (RunContext::Feed); call it inside the step. NotFound: no hook has.
  // InvalidArgument: it has another type.
  template <typename T>
  absl::StatusOr<T> Fed(const std::string& name) const {
    return feeds_.Get<T>(name);
  }

  // Ends in order: every hook's End, even if one fails (unless Start ended before there was a session, or a thread of
  // the session has failed), the session's threads, then "done" to the ps, whatever failed before. Returns the first
  // error. A second call does nothing and is no error, as in TensorFlow.
  [[nodiscard]] absl::Status Close();

  const Algorithm& algorithm() const { return *environment_.algorithm; }  // that it trains with
  int64_t global_step() const { return global_step_; }
  double last_loss() const { return last_loss_; }
  bool is_chief() const { return is_chief_; }
  // The path of the last checkpoint of this session's saver; empty if none.
  std::string last_checkpoint() const { return saver() != nullptr ? saver()->last_checkpoint() : ""; }
  Coordinator& coordinator() { return coordinator_; }  // of its threads; hooks find it in SessionContext

 private:
  friend class StepContext;
  Saver* saver() const { return manager_.saver(); }
  [[nodiscard]] absl::Status CheckOptions() const;
  [[nodiscard]] absl::Status CheckHooks() const;
  // FailedPrecondition: called from within a step, by its loss or by a hook.
  [[nodiscard]] absl::Status CheckBetweenSteps(const char* called) const;
  [[nodiscard]] absl::Status StartHooked();
  [[nodiscard]] absl::Status EndIfEnded(absl::Status status);
  [[nodiscard]] absl::Status Load(const std::string& path);
  [[nodiscard]] absl::Status LeaveIfInterrupted(absl::Status status);
  void AddDefaultHooks();
  [[nodiscard]] absl::Status Create();
  [[nodiscard]] absl::Status OpenSummaries();
  [[nodiscard]] absl::Status AfterCreate();
  absl::Status CallStepFn(absl::FunctionRef<absl::Status(StepContext&)> step_fn);
  [[nodiscard]] absl::Status RunHooked();
  [[nodiscard]] absl::Status FetchHooked(absl::FunctionRef<absl::Status()> fetch);
  [[nodiscard]] absl::Status RunStep(Track* track);
  absl::StatusOr<StepResult> RunAlgorithm(RunContext& context);
  absl::StatusOr<StepResult> Step();
  [[nodiscard]] absl::Status Recover(const absl::Status& cause);
  bool ThreadLostModel() const;
  absl::Status StopThreads();
  [[nodiscard]] absl::Status EndHooks();
  [[nodiscard]] absl::Status ObeyLoadRequest();
  SessionContext MakeContext();

  const SessionEnvironment environment_;
  const SessionOptions options_;
  const bool is_chief_;
  const std::shared_ptr<SessionCreator> creator_;
  SessionManager manager_;
  StepWatch watch_;
  std::vector<std::shared_ptr<SessionHook>> hooks_;
  std::unique_ptr<EventFileWriter> summaries_;
  StepSummaries step_summaries_;
  Feeds feeds_;
  int64_t global_step_ = 0;
  double last_loss_ = 0;
  size_t num_default_hooks_ = 0;  // the first ones of hooks_, before the program's
  bool in_step_ = false;          // in a step or in the hooks' AfterCreateSession
  bool ran_ = false;
  bool created_ = false;  // every hook has been told of the session
  bool stop_ = false;
  bool closed_ = false;
  Coordinator coordinator_;  // last: its threads may use what stands above
};

}  // namespace muster
