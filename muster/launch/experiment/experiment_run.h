// The supervisor of one run, from CREATED to its end: builds if needed, waits for GPUs, and writes what happens to the
// registry and the logs. TaskRun starts, supervises and ends the tasks, those of the build too. It has no terminal and
// no user who waits: it retries whatever can't be written, and the tasks go on meanwhile. One thread that waits in one
// place; the process must have no other, since it forks.
#pragma once

#include <sys/types.h>

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/launch/experiment/experiment_hosts.h"
#include "muster/launch/experiment/experiment_plan.h"
#include "muster/launch/experiment/run_progress.h"
#include "muster/launch/experiment/supervisor_pulse.h"
#include "muster/launch/experiment/supervisor_setting.h"
#include "muster/launch/experiment/task_logs.h"
#include "muster/launch/project/build.h"
#include "muster/launch/registry/registry.h"
#include "muster/launch/registry/run_lock.h"
#include "muster/launch/supervise/task_supervisor.h"
#include "muster/launch/task_run/task_run.h"
#include "muster/launch/watch/host_usage.h"

namespace muster {

struct ExperimentEnd {
  int exit_code = 0;
  // Its job's time was over, and it goes on in another one: its tasks have ended, but the registry has no end.
  bool goes_on = false;
  bool begun_anew = false;                       // by the job's engine, which begins it once more
  bool doubtful = false;                         // the engine couldn't be asked whether somebody has cancelled the job
  absl::Duration ending = absl::ZeroDuration();  // how long the tasks took to end after they were asked to; 0: weren't
};

// Blocks until the run has ended. SIGTERM and SIGINT end it (KILLED), a second one kills it at
// once. Returns an error if the registry couldn't be read, and then starts nothing. Any other failure ends the run,
// with its reason in the registry; a full disk doesn't, for which it waits.
absl::StatusOr<ExperimentEnd> RunExperiment(const Home& home, Registry& registry, const ExperimentId& id, RunLock lock,
                                            const SupervisorSetting& setting);

inline const TaskId kBuildTask{kBuildJob, 0};

struct RunOrder {
  Home home;
  RunRecord run;
  ExperimentFile file;
  SubmitOptions options;
  SupervisorSetting setting;
  HostPlan hosts;  // without hosts: this machine
  // Gives the hosts back once no task is left; nullptr: nobody waits for them. `say` takes lines for the user.
  std::function<void(const std::function<void(const std::string& line)>& say)> give_back = nullptr;
};

// Returns the engine that runs the tasks (MakeBackend).
std::string EngineOf(const RunOrder& order);
// Returns where the order's evaluator may go (PortRequest::elsewhere).
MoveWish ElsewhereIn(const RunOrder& order);

// Longer than a program that will go on writes and computes nothing, between two epochs say.
inline constexpr absl::Duration kIdleGrace = absl::Minutes(10);

class ExperimentRun final : public TaskRunClient {
 public:
  // Borrows `registry`, which must outlive it.
  ExperimentRun(RunOrder order, Registry& registry);

  // Runs to the end, which is in the registry and the logs when this returns.
  ExperimentEnd Run();

  void OnOutput(const TaskId& task, OutputStream stream, std::string_view bytes) override;
  void OnOutputLost(const TaskId& task, OutputStream stream, uint64_t bytes) override;
  void OnOutputEnd(const TaskId& task) override;
  std::deque<std::string> LastLines(const TaskId& task) const override;
  void OnLaunch(const TaskId& task, int life) override;
  void OnStarted(const ProcessSpec& spec, const LocalProcess& process) override;
  void OnUsage(const TaskId& task, const ProcessUsage& usage) override;
  void OnPlaced(const TaskId& task, const std::string& host) override;
  MoveWish MayMoveTo(const TaskId& task) override;
  bool IsReplacedAtOnce(const TaskId& task) const override;
  bool LearnsOfMoves() const override { return order_.file.framework == Framework::kMuster; }
  absl::StatusOr<std::vector<ProcessSpec>> PlanAgain(const TaskId& task, const std::string& host,
                                                     const ReservedPorts& addresses) override;
  std::string NameOf(const TaskId& task) const override { return LabelOf(task); }
  std::string WhyInterrupted() const override;
  void Say(const std::string& line) override { logs_.Say(line); }
  void Wait() override { WaitUntil(absl::InfiniteFuture()); }

 private:
  // The steps, in this order. An error is the reason why the run fails; Cancelled: it was interrupted.
  [[nodiscard]] absl::Status Go();
  void AddTasks();
  [[nodiscard]] absl::Status Build();
  [[nodiscard]] absl::Status RunBuild();
  [[nodiscard]] absl::Status MakeFolders();
  [[nodiscard]] absl::Status TryToMakeFolders();
  // Does what a full disk of this machine prevents again and again.
  [[nodiscard]] absl::Status TryUntilThereIsRoom(absl::FunctionRef<absl::Status()> work);
  // On hosts, reaches them first.
  [[nodiscard]] absl::Status ReservePorts();
  [[nodiscard]] absl::Status WhyHostsFail(const absl::Status& why);
  [[nodiscard]] absl::Status CopyCode();
  // Lets each host do what `setup` says.
  [[nodiscard]] absl::Status SetUp();
  std::vector<TaskId> SetupTasks() const;  // without those of hosts that are left out
  [[nodiscard]] absl::Status Plan();
  void AddAddresses(ExperimentPlanRequest& request) const;
  [[nodiscard]] absl::Status TakeGpus();
  [[nodiscard]] absl::Status LaunchAll();
  // Goes on with the tasks of the supervisor before, in the place of all these steps.
  [[nodiscard]] absl::Status TakeOver(const Handover& left);
  // Lets a next supervisor of this job go on with the tasks, if this one is killed.
  void LeaveHandover();
  void WriteHandoverNow();
  void LeaveNoHandover(const absl::Status& why);
  void MakeHosts();
  [[nodiscard]] absl::Status WhyNotStarted(const StartFailure& failure);
  void LaunchTensorBoard();
  void FetchOutput();
  // Asks the tasks to end when the time of the supervisor's job is over.
  void MindTheJob();
  // Says why the interrupted run ends, and whether it goes on in another job.
  void NoteInterruption();
  void NoteEnd(const absl::Status& went);
  void End(const absl::Status& went);

  // Waits until all launched tasks have ended; an error names the first that failed.
  [[nodiscard]] absl::Status Supervise(const TaskId& chief, absl::Duration idle_grace,
                                       std::optional<LeftTasks> left = std::nullopt);
  [[nodiscard]] absl::Status WhyItFailed();
  // Returns what the build's own last lines say about it and what to do; empty if they say nothing.
  std::string WhatTheBuildSays() const;
  // Returns why a task was ended, or ended well although its exit status looks otherwise.
  std::string WhyItWasEnded(TaskChange change, const ExitStatus& status) const;
  void OnChange(const TaskId& task, TaskChange change, const ExitStatus& status);
  void NoteProcess(const TaskId& task);
  std::map<TaskId, double> CpuSecondsOf(const std::vector<TaskId>& tasks) const;
  // Waits for that long while everything else goes on; Cancelled once interrupted.
  [[nodiscard]] absl::Status Pause(absl::Duration time);
  // Lets hosts be heard and answered during work that takes long; has no effect on this machine.
  void HearHosts();
  // The one place where the supervisor waits: runs one round of the loop and what is due then.
  void WaitUntil(absl::Time deadline);
  void WriteToTheEnd();

  // Returns the task's plan; the end for the build, which has none.
  std::vector<PlannedTask>::const_iterator PlannedOf(const TaskId& task) const;
  std::vector<ProcessSpec> Processes() const;  // of the plan
  bool WantsTensorBoard() const;
  bool HasStatusPages() const;
  bool IsOnHosts() const { return !order_.hosts.hosts.empty(); }
  bool IsTransfer(const TaskId& task) const { return hosts_.has_value() && hosts_->Owns(task); }

  // Constant after construction, but for where tasks run.
  RunOrder order_;
  Registry& registry_;
  const std::string run_id_;
  const std::string random_token_;  // of the job, unless the user has one

  TaskRun tasks_;  // first, so that the signals are blocked from here on
  TaskLogs logs_;
  RunProgress progress_;
  SupervisorPulse pulse_;
  bool changed_ = false, said_why_ = false;          // since the last Commit; the logs have why it failed
  absl::Time job_ends_at_ = absl::InfiniteFuture();  // as far as was known when it was asked last
  absl::Time ask_job_at_ = absl::InfinitePast();     // when that is due again
  bool time_is_over_ = false, job_failed_ = false;   // of the supervisor's job; its engine has ended it, for a reason
  absl::Time asked_at_ = absl::InfiniteFuture();     // when the tasks were asked to end
  ExperimentEnd end_;

  BuildPlan build_;
  std::string setup_key_;
  ExperimentPlan plan_;
  ReservedPorts ports_;
  std::optional<ExperimentHosts> hosts_;    // on hosts, from the time at which they have the code
  std::map<TaskId, int> lives_;             // how often each was launched
  bool leaves_handover_ = false;            // once all tasks are launched
  std::optional<Handover> handover_;        // in a job, while the tasks run
  std::optional<LoggedOutputFile> logged_;  // likewise
  std::map<TaskId, HostUsage> usages_;      // of tasks on hosts, while they run
  absl::Time usages_written_ = absl::InfinitePast();
};

}  // namespace muster
