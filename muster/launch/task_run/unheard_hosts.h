// What an interrupt can't do now: tasks of a host that isn't heard can't be told to end. Pure; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "muster/cluster/task_id.h"

namespace muster {

// Returns a line for each host whose tasks can't be told to end: for what is waited, and what another interrupt does.
// `unheard` returns a task's host as Backend::UnheardHost, `name` what the user calls the task.
std::vector<std::string> UnheardHostLines(const std::vector<TaskId>& running,
                                          absl::FunctionRef<std::string(const TaskId&)> unheard,
                                          absl::FunctionRef<std::string(const TaskId&)> name);

}  // namespace muster
