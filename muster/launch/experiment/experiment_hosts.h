// What an experiment on hosts needs besides its tasks: a host for each task, the code where a host doesn't see it, an
// OUTPUT_DIR there, and in the end what the tasks have written brought here. Not thread-safe.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/launch/backends/backend.h"
#include "muster/launch/experiment/experiment_plan.h"
#include "muster/launch/registry/registry.h"
#include "muster/launch/spec/experiment_file.h"
#include "muster/launch/task_run/code_copy.h"
#include "muster/launch/task_run/output_fetch.h"
#include "muster/launch/task_run/task_run.h"

namespace muster {

// Places the tasks of a run; without hosts in the options the plan is empty, for this machine. The processes of a
// torchrun worker share a host. `run`: of a grid, from 1, whose runs begin on one host after the other; `first`: the
// name of a host with which this one begins if it is there. InvalidArgument, saying what is accepted: as PlaceOnHosts,
// or the file asks for what hosts don't do.
absl::StatusOr<HostPlan> PlanHosts(const ExperimentFile& file, const SubmitOptions& options, int run = 0,
                                   const std::string& first = "");

struct HostedRun {
  HostPlan plan;
  std::string run_id;
  std::string name;        // of the folders for output on hosts: "home-3f0c91ab/4"
  std::string work;        // the folder with the code, in a folder of this run alone; absolute
  std::string output_dir;  // absolute
  // A file with the mark of the host's folder that has the newest output; "" or none: it is in output_dir.
  std::string mark_file;
  // A file that says where it is while it is nowhere else (CheckOutputIsHere).
  std::string elsewhere_file;
  TaskId chief;
  mode_t users_umask = 022;
};

// Returns HostedRun::name: that of all attempts, and of no experiment of another MUSTER_HOME, or of one that was there
// before.
std::string HostedName(const Home& home, const RunRecord& run);

// Returns the host on which a task has run last in the attempts before attempt `present`, by the run's records. Empty:
// it was this machine, it has never run, or the files can't be read. Blocks while it reads.
std::string HostBefore(const Home& home, const ExperimentId& id, int present, const TaskId& task);

// RefusedAttempt: what an earlier attempt has written is on a host alone, as the file says, and one that begins
// here would begin anew.
[[nodiscard]] absl::Status CheckOutputIsHere(const std::string& elsewhere_file);

// Returns where what tasks write is while it isn't here, `chief`'s host first: "on h1, h2 in FOLDER, on h3 in OTHER";
// "" if that one sees OUTPUT_DIR. All hosts in `placed` are meant.
std::string OutputPlaces(const std::map<std::string, PlacedCode>& placed, const std::string& chief);

struct HostedCalls {
  std::function<void(const std::string& line)> say;  // takes a line for the user that can't wait
  std::function<void()> between;                     // called during work that takes long
};

class ExperimentHosts {
 public:
  // Borrows `tasks`. The TaskRunClient must hand over the output of the
  // tasks that this owns, and show and record none of them.
  ExperimentHosts(HostedRun run, TaskRun& tasks, HostedCalls calls)
      : run_(std::move(run)), hosts_(HostsWithTasks(run_.plan)), tasks_(tasks), calls_(std::move(calls)) {}

  bool Owns(const TaskId& task) const { return task.job == kReceiveJob || task.job == kSendJob; }
  void OnOutput(const TaskId& task, OutputStream stream, std::string_view bytes);

  // Brings the code to hosts that don't see it, and finds out which see OUTPUT_DIR; the folders must be there. Blocks.
  // Returns lines for the user. Errors are those of CodeCopy::Run.
  absl::StatusOr<std::vector<std::string>> CopyCode();
  // Knows from the supervisor before what CopyCode has found out.
  void Know(std::map<std::string, PlacedCode> placed) { placed_ = std::move(placed); }
  const std::map<std::string, PlacedCode>& placed() const { return placed_; }
  // Returns the hosts to which a task may go when its own is lost: those that have the code. The chief and the
  // evaluator need the checkpoints, and so one that sees OUTPUT_DIR, as theirs must do.
  std::vector<std::string> MayMoveTo(const TaskId& task) const;
  // The task is there from now on.
  void Move(const TaskId& task, const std::string& host) { run_.plan.placement[task] = host; }
  const std::map<TaskId, std::string>& placement() const { return run_.plan.placement; }
  // Returns the folder with the code on a host that has it.
  std::string WorkOn(const std::string& host) const;
  // Says of each task in which folder it works on its host, and where its OUTPUT_DIR is.
  void Place(ExperimentPlan& plan) const;
  // Must be called in each round of the loop, outside of its calls: does a part of what would hold up the loop. Returns
  // whether there is more of it.
  bool Work() { return fetch_.has_value() && fetch_->Work(); }
  // Must be called before the tasks write anything: notes where that is until FetchOutput has brought it.
  [[nodiscard]] absl::Status NoteOutput() const;
  // Brings what the tasks have written on hosts that don't see OUTPUT_DIR. Blocks. Returns lines for the user.
  std::vector<std::string> FetchOutput();
  // Returns lines for the user, for an end at which nothing is brought.
  std::vector<std::string> WhereOutputStays() const;

 private:
  std::vector<std::string> LinesAboutOutput() const;
  // Adds to the order what tells the chief's host that sees no OUTPUT_DIR whether it has what earlier attempts have
  // written.
  absl::Status AddMarks(CodeCopyOrder& order) const;
  // RefusedAttempt: it hasn't.
  absl::Status CheckMark(const CodeCopyOrder& order) const;

  HostedRun run_;                         // constant but for the placement
  const std::vector<std::string> hosts_;  // with tasks at the beginning: WithTransfers numbers them
  TaskRun& tasks_;
  const HostedCalls calls_;
  std::optional<CodeCopy> copy_;              // while it runs
  std::optional<OutputFetch> fetch_;          // likewise
  std::map<std::string, PlacedCode> placed_;  // by host
};

}  // namespace muster
