// Decides which task of a job runs on which host. Pure, thread-safe.
//
// Tasks that train (chief, master, worker, and jobs of other names) take a slot each and are dealt out in turn, one to
// each host that has a slot and GPUs left. Parameter servers and the evaluator compute little and take no slot; ps are
// dealt out in turn over all hosts, beginning with the first, and the evaluator gets the host with the fewest tasks.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/cluster/task_id.h"
#include "muster/launch/hosts/host_list.h"

namespace muster {

struct TaskToPlace {
  TaskId task;
  int gpus = 0;  // that it needs, >= 0
};

struct PlacementRequest {
  std::vector<TaskToPlace> tasks;  // in the order in which they get their places
  std::vector<Host> hosts;         // names are different; gpus are those that the hosts really have if not stated
  // `placement:` of the experiment file: the hosts of a job's tasks in turn ({"worker", {"b", "c"}}: worker 0 and 2 on
  // b, worker 1 on c). These tasks need no free slot, since the user has decided.
  std::map<std::string, std::vector<std::string>> explicit_hosts;
};

struct MoveRequest {
  TaskToPlace task;
  std::vector<Host> hosts;                // those that can take it
  std::map<TaskId, std::string> present;  // the hosts of all tasks now
  std::map<TaskId, int> gpus;             // of tasks that need some
};

// Returns where a task goes whose own host is lost: of the hosts with a slot left the one with the fewest tasks, the
// first of several. Each host numbers its tasks' GPUs from 0, so a task that needs some goes only where no other has
// any, and to a host of which is stated that it has enough. nullopt: none has room.
std::optional<std::string> PlaceElsewhere(const MoveRequest& request);

// Returns the host's name for each task. InvalidArgument, saying what would help: no host, more tasks than slots or
// GPUs, a placement that names an unknown host or a job that has no tasks.
absl::StatusOr<std::map<TaskId, std::string>> PlaceOnHosts(const PlacementRequest& request);

// Returns the hosts that a run can do without: all their tasks are dispensable (IsDispensable).
std::set<std::string> DispensableHosts(const std::map<TaskId, std::string>& placement);

}  // namespace muster
