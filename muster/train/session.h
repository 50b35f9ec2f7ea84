// A training session: creates or restores the model, waits for it, runs steps between hooks, and ends in order. The
// semantics of TensorFlow's MonitoredTrainingSession (python/training/monitored_session.py), torch-free: a step is
// whatever the Algorithm does. The façade's MonitoredTrainingSession wraps it and turns errors into exceptions.
//
// Used by one thread. Waits only in the event loop of its server.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/algo/algorithm.h"
#include "muster/base/clock.h"
#include "muster/base/file_system.h"
#include "muster/summary/event_file_writer.h"
#include "muster/train/saver.h"
#include "muster/train/session_hook.h"
#include "muster/train/step_watch.h"

namespace muster {

struct SessionOptions {
  // Empty, or the server's own Target(): another is an error (a session runs in the process of its server).
  std::string master;
  // Who initialises, saves and restores. Unset: what the cluster says.
  std::optional<bool> is_chief;
  std::string checkpoint_dir;  // empty: nothing is saved
  std::string summary_dir;     // empty: checkpoint_dir
  // How often the chief saves. Neither set: every 600 seconds; one set turns the other off; 0 turns it off.
  std::optional<double> save_checkpoint_secs;
  std::optional<int64_t> save_checkpoint_steps;
  // How often the chief writes summaries. Neither set: every 100 steps; likewise.
  std::optional<int64_t> save_summaries_steps;
  std::optional<double> save_summaries_secs;
  int64_t log_step_count_steps = 100;  // 0: no `global_step/sec`
  double max_wait_secs = 7200;         // for the chief to initialise the model
  int keep_checkpoint_max = 5;
  double keep_checkpoint_every_n_hours = 10000;  // more than 0; see SaverOptions
  bool allow_older_checkpoint = false;           // when the newest is damaged, go on from the newest that isn't
  std::vector<std::shared_ptr<SessionHook>> chief_only_hooks;
  std::vector<Saveable> saveables;  // kept in checkpoints beside the variables
};

// What a session stands on; all borrowed for its life.
struct SessionEnvironment {
  StoreClient* client = nullptr;
  Algorithm* algorithm = nullptr;
  EventLoop* loop = nullptr;
  FileSystem* files = nullptr;
  const Clock* clock = nullptr;
  bool is_chief = false;  // what the cluster says
  // The client's store is this worker's alone, who is its chief too, whoever is the cluster's.
  bool own_store = false;
  std::string target;  // the server's
  std::function<bool()> stop_requested = [] { return false; };
  TrainingMetrics* metrics = nullptr;  // null: nothing is kept
  // Told once the task is known to the ps: heartbeats begin.
  std::function<void()> on_joined = [] {};
};

class Session {
 public:
  Session(SessionEnvironment environment, SessionOptions options, std::vector<std::shared_ptr<SessionHook>> hooks);
  ~Session();  // without Close: no hook's End runs and the ps are not told "done"

  // Blocks until the model is initialised or restored everywhere. Errors: those of StoreClient and Saver;
  // InvalidArgument: options that contradict each other.
  [[nodiscard]] absl::Status Start();

  bool ShouldStop() const { return stop_ || environment_.stop_requested(); }
  void RequestStop() { stop_ = true; }

  // One step between the hooks. FailedPrecondition: after the stop ("Run called even after should_stop requested.").
  // Training that was ended elsewhere (muster's Shutdown) is no error: ShouldStop becomes true. Nor is a ps that has
  // lost the model, or a checkpoint that was loaded meanwhile: the chief restores the last checkpoint if need be, hooks
  // hear AfterCreateSession again, and the step is run with the new values.
  [[nodiscard]] absl::Status Run();

  // The chief, between two runs: training goes on from the checkpoint at `path` ("dir/model.ckpt-100"), on every ps;
  // the workers pull its values with their next step, and global_step follows. On an error everything stays as it was.
  // FailedPrecondition: not the chief; a checkpoint of another model. NotFound, DataLoss: none there, or damaged.
  [[nodiscard]] absl::Status Restore(const std::string& path);

  // A value of this step for summaries and LoggingTensor; call it inside the step. Further kinds:
  // StepSummaries::Current.
  void AddScalar(const std::string& name, double value) { step_summaries_.AddScalar(name, value); }

  // Ends in order: every hook's End (unless Start ended before there was a session), then "done" to the ps. Once.
  [[nodiscard]] absl::Status Close();

  int64_t global_step() const { return global_step_; }
  double last_loss() const { return last_loss_; }
  bool is_chief() const { return is_chief_; }
  // The path of the last checkpoint of this session's saver; empty if none.
  std::string last_checkpoint() const { return saver_ ? saver_->last_checkpoint() : ""; }

 private:
  [[nodiscard]] absl::Status CheckOptions() const;
  [[nodiscard]] absl::Status StartHooked();
  [[nodiscard]] absl::Status Load(const std::string& path);
  [[nodiscard]] absl::Status LeaveIfInterrupted(absl::Status status);
  void AddDefaultHooks();
  [[nodiscard]] absl::Status Create();
  [[nodiscard]] absl::Status InitializeOrRestore();
  [[nodiscard]] absl::Status RunHooked();
  [[nodiscard]] absl::Status RunStep(Track* track);
  [[nodiscard]] absl::Status Recover(const absl::Status& cause);
  [[nodiscard]] absl::Status Settle();
  [[nodiscard]] absl::Status ReadGlobalStep();
  [[nodiscard]] absl::Status EndHooks();
  [[nodiscard]] absl::Status ObeyLoadRequest();
  SessionContext MakeContext();

  const SessionEnvironment environment_;
  const SessionOptions options_;
  const bool is_chief_;
  StepWatch watch_;
  std::vector<std::shared_ptr<SessionHook>> hooks_;
  std::unique_ptr<Saver> saver_;
  std::unique_ptr<EventFileWriter> summaries_;
  StepSummaries step_summaries_;
  int64_t global_step_ = 0;
  double last_loss_ = 0;
  absl::Status recovering_from_;  // OK until the model was lost
  bool ran_ = false;
  bool joined_ = false;
  bool created_ = false;  // the hooks know the session
  bool stop_ = false;
  bool closed_ = false;
};

}  // namespace muster
