// Supports a training loop of the program's own: prepares the model or waits for it, and saves checkpoints and writes
// summaries on threads beside the loop. TensorFlow's Supervisor (python/training/supervisor.py), the session object
// before MonitoredTrainingSession: no hooks, no recovery, and nothing is saved at the end unless the program calls
// Save. Created, started and stopped by the training thread; functions that say so may be called from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/base/turn_lock.h"
#include "muster/summary/event_file_writer.h"
#include "muster/summary/step_summaries.h"
#include "muster/train/hook_api/session_environment.h"
#include "muster/train/hooks/run_summary.h"
#include "muster/train/session/session_config.h"
#include "muster/train/session/session_manager.h"
#include "muster/train/session/step_watch.h"
#include "muster/train/tensorflow/looper_thread.h"
#include "muster/train/tensorflow/queue_runner.h"
#include "muster/train/threads/coordinator.h"

namespace muster {

struct SupervisorOptions {
  std::optional<bool> is_chief;        // unset: what the cluster says
  std::shared_ptr<Scaffold> scaffold;  // init, init_fn, local init, ready, saver, summary
  SessionConfig config;
  std::string logdir;  // the chief's checkpoints and event files; empty: neither
  // How often the chief's threads write; 0: no such thread.
  double save_summaries_secs = 120;
  double save_model_secs = 600;
  double stop_grace_secs = 120;
  double max_wait_secs = 7200;  // for the chief to make the model ready
};

class Supervisor {
 public:
  Supervisor(SessionEnvironment environment, SupervisorOptions options);
  // Calls Stop if the program hasn't, and logs its error.
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // The chief prepares the model and starts the standard services: the threads that request summaries (of the next
  // step), count steps and save checkpoints. Each does its work at once and then at its interval. The other tasks wait
  // for the model. Without a logdir there are no services. Call it once. Errors: SessionManager's, but Aborted is
  // retried; InvalidArgument, WrongConfiguration: `config`; FailedPrecondition: called before.
  [[nodiscard]] absl::Status PrepareOrWaitForSession(bool start_standard_services = true);

  // Starts the same threads later, for a session that was prepared without them. If they run already, they are kept and
  // no others are started. For the training thread, not within a step. FailedPrecondition: not the chief; no session,
  // or it has ended. Without a logdir it only logs a warning.
  [[nodiscard]] absl::Status StartStandardServices();

  // TensorFlow's `with managed_session()`: prepares, calls `body`, requests a stop with its error, stops. OutOfRange
  // from the body, and training that has ended elsewhere, are clean ends.
  [[nodiscard]] absl::Status ManagedSession(absl::FunctionRef<absl::Status()> body);

  // Runs one step. It and the service threads exclude each other. Errors: those of the algorithm, and of the event
  // file. FailedPrecondition within a step of this thread, where it would wait for itself; the same holds for Save and
  // Stop.
  absl::StatusOr<StepResult> Run();
  // A run that trains nothing: calls `fetch` while the model shows what the ps hold now (Session::Fetch). Otherwise as
  // Run.
  [[nodiscard]] absl::Status Fetch(absl::FunctionRef<absl::Status()> fetch);
  // Adds a value of this step for the summaries; call it inside the step. Other kinds of values:
  // StepSummaries::Current.
  void AddScalar(const std::string& name, double value) { step_summaries_.AddScalar(name, value); }

  // On the chief with a logdir: saves a checkpoint now. Returns its path, or Saver::Save's error (the checkpoint thread
  // goes on after those that may pass, and tries again sooner). From any thread, but not within the step.
  absl::StatusOr<std::string> Save();

  // On the chief with a logdir: the summaries of the next step are written (TensorFlow's summary_computed, at the
  // program's own times instead of the thread's). From any thread, but not within the step.
  [[nodiscard]] absl::Status SummarizeNextStep();

  // Calls `target` on a thread of its own every `interval_secs`, until the stop.
  void Loop(double interval_secs, std::function<absl::Status()> target);

  // Starts the runners on the coordinator's threads; they must outlive Stop. AlreadyExists: one was started before.
  [[nodiscard]] absl::Status StartQueueRunners(const std::vector<QueueRunner*>& runners);

  // From any thread.
  bool ShouldStop() const { return coordinator_.ShouldStop() || environment_.stop_requested(); }
  void RequestStop() { coordinator_.RequestStop(); }
  [[nodiscard]] absl::Status RequestStop(const absl::Status& why) { return coordinator_.RequestStop(why); }
  bool WaitForStop() { return coordinator_.WaitForStop(); }
  bool StopOnError(absl::FunctionRef<absl::Status()> work) { return coordinator_.StopOnError(work); }
  Coordinator& coordinator() { return coordinator_; }

  // Ends the threads within the grace period, the event file and the session, and tells the ps "done". Call it once.
  // Returns the error with which the stop was requested; else FailedPrecondition naming the threads that haven't ended.
  // The destructor waits for those threads; Stop itself waits for one only while it is in the middle of a step or a
  // save.
  [[nodiscard]] absl::Status Stop();

  bool is_chief() const { return manager_.options().is_chief; }
  // The algorithm it trains with.
  const Algorithm& algorithm() const { return *environment_.algorithm; }
  int64_t global_step() const { return global_step_; }  // as this process saw it last; any thread, also in the step

 private:
  [[nodiscard]] absl::Status Prepare();
  bool IsPrepared() const;
  [[nodiscard]] absl::Status CheckBetweenSteps(const char* called) const;
  [[nodiscard]] absl::Status CheckOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(turn_);
  [[nodiscard]] absl::Status AskForSummaries();
  [[nodiscard]] absl::Status RefuseLoadRequest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(turn_);
  [[nodiscard]] absl::Status WriteSummaries(const StepResult& result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(turn_);
  [[nodiscard]] absl::Status CountSteps();
  [[nodiscard]] absl::Status SaveOrContinue();
  bool MaySaveLater(const absl::Status& failed) const;
  absl::Status EndSession();

  const SessionEnvironment environment_;
  const SupervisorOptions options_;
  SessionManager manager_;
  StepWatch watch_;
  StepSummaries step_summaries_;
  WholeRunSummary whole_run_;
  bool stopped_ = false;                        // Stop was called; the training thread's
  bool serving_ = false;                        // the standard services were started; likewise
  std::unique_ptr<EventFileWriter> summaries_;  // doesn't change once `prepared_`
  std::atomic<int64_t> global_step_ = 0;
  std::atomic<std::thread::id> stepping_;  // the thread that is in a step, or none

  // The client, the saver and the following members are used by one thread at a time.
  mutable TurnLock turn_;
  bool prepared_ ABSL_GUARDED_BY(turn_) = false;
  bool closed_ ABSL_GUARDED_BY(turn_) = false;
  bool summaries_wanted_ ABSL_GUARDED_BY(turn_) = false;  // for the next step
  absl::Time counted_at_ ABSL_GUARDED_BY(turn_) = absl::InfinitePast();
  int64_t counted_step_ ABSL_GUARDED_BY(turn_) = 0;

  Coordinator coordinator_;
  std::vector<std::unique_ptr<LooperThread>> threads_;  // last: they use what stands above
};

}  // namespace muster
