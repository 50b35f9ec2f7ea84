// What follows from a plan with hosts that nobody waits for (HostPlan::optional_hosts). Pure functions, thread-safe.
#pragma once

#include <set>
#include <string>

#include "muster/cluster/task_id.h"
#include "muster/launch/backends/backend.h"

namespace muster {

// Returns the optional hosts that are left out: what had its place there is elsewhere in the plan now.
std::set<std::string> LeftOutHosts(const HostPlan& plan);

// Returns where a task may go whose optional host is left out: to a needed host, if none has room to that of the chief.
MoveWish ElsewhereIn(const HostPlan& plan, const TaskId& chief);

}  // namespace muster
