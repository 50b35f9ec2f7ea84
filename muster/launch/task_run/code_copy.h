// Brings the code of a run to its hosts: a task `muster receive` on each, all at once, in front of the run's own tasks
// (docs/host_files.md). Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/launch/project/tree_sender.h"
#include "muster/launch/task_run/task_run.h"

namespace muster {

inline constexpr char kReceiveJob[] = "receive";
inline constexpr char kSendJob[] = "send";    // of OutputFetch
inline constexpr char kSetupJob[] = "setup";  // of an experiment

// What a host has of the code.
struct PlacedCode {
  std::string work;              // the folder on the host to work in; empty: it sees the tree
  std::set<std::string> seen;    // of CodeCopyOrder::see_paths
  std::string output;            // the folder on the host for what tasks write; empty: none was made
  bool output_is_other = false;  // as TreeSender
  uint64_t files = 0;            // sent
  uint64_t bytes = 0;            // sent
};

struct CodeCopyOrder {
  std::string job;                 // the run's, letters, digits and '-'
  std::vector<std::string> hosts;  // by name; HostPlan::placement has TaskId{kReceiveJob, i} on the i-th
  std::set<std::string> left_out;  // of these, which get nothing
  std::set<std::string> optional;  // of these: left out (TaskRun::LeaveOut) if it can't be brought there
  std::vector<std::pair<std::string, std::string>> environment;  // of each task
  std::vector<std::string> see_paths;                            // this and what follows as in TreeSenderOptions
  std::string nonce;
  std::string output_name;
  std::string output_host;  // the one whose folder for output must be one to go on in; what follows is about it
  std::vector<std::string> output_before;
  std::string output_next;
  bool output_anew = false;
};

class CodeCopy {
 public:
  // Borrows `tasks` and `tree`.
  CodeCopy(CodeCopyOrder order, const DescribedTree& tree, TaskRun& tasks);

  // Blocks until all hosts have it, which must have answered (TaskRun::Reserve), and returns what they have; all their
  // errors are in one status, a line each. Cancelled after an interrupt. The TaskRunClient must hand over the output of
  // the tasks that it owns, and show and record none of them.
  absl::StatusOr<std::map<std::string, PlacedCode>> Run();
  bool Owns(const TaskId& task) const { return task.job == kReceiveJob; }
  void OnOutput(const TaskId& task, OutputStream stream, std::string_view bytes);

 private:
  struct Host {
    std::string name;
    TreeSender sender;
    bool left_out = false;
    absl::Status failed;
    bool ended = false;  // its input
    std::string how;     // its task has ended, in words
    std::string stderr_text;
  };

  void GiveInput(const TaskId& task, Host& host);
  absl::Status WhyNot(const Host& host) const;

  const CodeCopyOrder order_;
  TaskRun& tasks_;
  std::vector<Host> hosts_;
};

// Returns the plan's hosts that have tasks, in its order; those that are left out (LeftOutHosts) had some.
std::vector<std::string> HostsWithTasks(const HostPlan& plan);
// Returns the plan with a place for each task of these jobs: the i-th of each is on the i-th of these hosts.
HostPlan WithTransfers(HostPlan plan);

// Returns a line for the user about a copy that may take a while; "" for one that takes none.
std::string CopyAheadText(const DescribedTree& tree);

// Returns what a dry run says of the code that would go to each host: files, bytes, the five largest.
std::string CopyText(const ProjectFiles& files);

// What goes to hosts unless the user says otherwise: more is mostly data or checkpoints in the folder of the code.
inline constexpr int64_t kUsualCodeLimit = int64_t{256} << 20;
// InvalidArgument, naming the largest files and the way out, if it is more than `limit` bytes.
[[nodiscard]] absl::Status CheckCodeSize(const ProjectFiles& files, int64_t limit);

}  // namespace muster
