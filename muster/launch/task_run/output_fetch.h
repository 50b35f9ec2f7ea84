// Brings what the tasks of a run have written on hosts to a folder of this machine: a task `muster send` on each of
// these hosts, one after the other (docs/host_files.md). Not thread-safe.
#pragma once

#include <sys/types.h>

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "muster/launch/project/folder_receiver.h"
#include "muster/launch/task_run/code_copy.h"
#include "muster/launch/task_run/task_run.h"

namespace muster {

struct OutputFetchOrder {
  // The host's position in HostsWithTasks(plan), its name, and the folder there.
  struct From {
    int index = 0;
    std::string host;
    std::string folder;
  };
  std::vector<From> hosts;                                       // files of a later one replace those of an earlier one
  std::string to;                                                // absolute; must exist
  mode_t umask = 022;                                            // of the files and folders made here
  std::vector<std::pair<std::string, std::string>> environment;  // of each task
};

class OutputFetch {
 public:
  // Borrows `tasks`.
  OutputFetch(OutputFetchOrder order, TaskRun& tasks) : order_(std::move(order)), tasks_(tasks) {}

  // Blocks until all is here. Returns lines for the user: what has come from which host, or why not and where it is;
  // after an interrupt, that it is still there. The TaskRunClient must hand over the output of the tasks that it owns,
  // and show and record none of them.
  std::vector<std::string> Run();
  // Returns whether all of the host's has come; after Run.
  bool Has(const std::string& host) const { return come_.contains(host); }
  // Must be called in each round of the loop, outside of its calls: compares a part of the files here. Returns whether
  // there is more to compare.
  bool Work();
  bool Owns(const TaskId& task) const { return task.job == kSendJob; }
  void OnOutput(const TaskId& task, OutputStream stream, std::string_view bytes);

 private:
  std::string FetchFrom(const OutputFetchOrder::From& from);
  // Gives the host what the receiver has to say, and the end of its input once nothing follows.
  void GiveInput(const TaskId& task);
  // Calls the receiver with the umask of the order.
  void Let(absl::FunctionRef<absl::Status()> receive);

  const OutputFetchOrder order_;
  TaskRun& tasks_;
  std::set<std::string> come_;              // hosts whose output is here
  TaskId task_;                             // of the host whose turn it is
  std::optional<FolderReceiver> receiver_;  // likewise
  absl::Status failed_;
  bool ended_ = false;  // its input
  std::string stderr_text_;
};

}  // namespace muster
