// What the supervisor of a run in a job leaves for the next one, in case it is killed (docs/slurm_jobs.md,
// "Take-over"): who it is, how the tasks were launched, and how much of their output is in the logs. Two files in the
// run's folder, for its owner alone, since the job's token is in one. Blocking, with one writer; not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/cluster/task_id.h"
#include "muster/launch/registry/experiment_id.h"
#include "muster/launch/registry/home.h"
#include "muster/launch/task_log/logged_since.h"
#include "muster/launch/task_run/code_copy.h"

namespace muster {

struct Handover {
  std::string job;          // of the engine, in which the supervisor is
  uint64_t supervisor = 1;  // its number: HostPlan::supervisor
  std::string run_id;
  std::string job_token;
  std::map<TaskId, std::vector<std::vector<std::string>>> addresses;  // of reserved ports, the newest last: tasks move
  std::map<TaskId, std::string> placement;
  std::map<std::string, PlacedCode> hosts;  // where each has the code, and a folder for output
  std::map<TaskId, int> lives;              // how often each task was launched
};

// NotFound: there is none. DataLoss: muster hasn't written it.
absl::StatusOr<Handover> ReadHandover(const Home& home, const ExperimentId& id);
// The errors of ReplaceFile.
[[nodiscard]] absl::Status WriteHandover(const Home& home, const ExperimentId& id, const Handover& handover);
// Removes both files.
void RemoveHandover(const Home& home, const ExperimentId& id);

// The file that says how much of each task's output its log has (whole lines since the task's last launch), and up to
// where in the log. Written in place after each write to a log. If its writer is killed between the two, the lines
// behind that place are counted in the log (CountLogged).
class LoggedOutputFile {
 public:
  struct TaskOutput {
    TaskId task;
    int life = 1;  // which launch of the task
    LoggedOutput logged;
  };

  // Replaces the file of an earlier supervisor at once.
  static absl::StatusOr<LoggedOutputFile> Make(const Home& home, const ExperimentId& id,
                                               const std::vector<TaskOutput>& tasks);
  ~LoggedOutputFile();
  LoggedOutputFile(LoggedOutputFile&& other) noexcept;
  LoggedOutputFile& operator=(LoggedOutputFile&&) = delete;

  // What can't be written is left out.
  void Note(const TaskId& task, int life, const LoggedOutput& logged);

 private:
  explicit LoggedOutputFile(int fd) : fd_(fd) {}

  int fd_;
  std::map<TaskId, int> places_;
};

// Returns what the file says of these lives; nothing of other ones.
std::map<TaskId, LoggedOutput> ReadLoggedOutput(const Home& home, const ExperimentId& id,
                                                const std::map<TaskId, int>& lives);

}  // namespace muster
