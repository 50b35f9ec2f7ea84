// Where the tasks of a run are when some have moved to another host: their addresses now and before, as the cluster
// file tells them to the others. Pure; not thread-safe.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "muster/cluster/task_id.h"

namespace muster {

class TaskMoves {
 public:
  // Takes a task's reserved addresses; again after it has moved.
  void Know(const TaskId& task, const std::vector<std::string>& addresses);
  // "HOST:PORT" of each reserved port of a task, in the order of the request.
  const std::map<TaskId, std::vector<std::string>>& addresses() const { return addresses_; }
  // Returns whether another task has, or had, one of the addresses: who still goes there would find the wrong one.
  bool AreOfAnother(const TaskId& task, const std::vector<std::string>& addresses) const;
  // Returns the cluster file (transport/tcp/moved_addresses.h): tasks with a server, whose port is their first.
  std::string ClusterFile() const;

 private:
  std::map<TaskId, std::vector<std::string>> addresses_;
  std::map<TaskId, std::vector<std::string>> former_;  // of the first port, the newest last
};

}  // namespace muster
