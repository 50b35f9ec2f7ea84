#include "muster/launch/task_run/unheard_hosts.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster {

std::vector<std::string> UnheardHostLines(const std::vector<TaskId>& running,
                                          absl::FunctionRef<std::string(const TaskId&)> unheard,
                                          absl::FunctionRef<std::string(const TaskId&)> name) {
  std::map<std::string, std::vector<std::string>> tasks;
  for (const TaskId& task : running)
    if (const std::string host = unheard(task); !host.empty()) tasks[host].push_back(name(task));
  std::vector<std::string> lines;
  for (const auto& [host, names] : tasks)
    lines.push_back(absl::StrCat("waiting for ", host, "; until then ", absl::StrJoin(names, ", "),
                                 " may go on there. Another interrupt kills the other tasks and waits no less for it"));
  return lines;
}

}  // namespace muster
