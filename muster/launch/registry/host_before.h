// Where a task has run before, by the records of its run.
#pragma once

#include <string>

#include "muster/cluster/task_id.h"
#include "muster/launch/registry/home.h"

namespace muster {

// Returns the host on which a task has run last in the attempts before attempt `present`. Empty: it was this machine,
// it has never run, or the files can't be read. Blocks while it reads.
std::string HostBefore(const Home& home, const ExperimentId& id, int present, const TaskId& task);

}  // namespace muster
