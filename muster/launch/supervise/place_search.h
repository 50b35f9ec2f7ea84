// Decides when a task that finds no host is tried again: its own is gone, and no other may have it. Not thread-safe.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "muster/cluster/task_id.h"

namespace muster {

class PlaceSearch {
 public:
  // How long a task may be without a place.
  static constexpr absl::Duration kPatience = absl::Minutes(10);

  struct NextTry {
    absl::Time when;
    absl::Duration left;  // of the patience
    bool is_news = true;  // the first one, and one every few minutes
  };
  // Returns nullopt once the task has been without a place for kPatience.
  std::optional<NextTry> Next(const TaskId& task, absl::Time now);
  bool IsSought(const TaskId& task) const { return searches_.contains(task); }
  void OnFound(const TaskId& task) { searches_.erase(task); }
  // Returns whether a task of the job has no place.
  bool HasAny(const std::string& job) const;

 private:
  struct Search {
    absl::Time since;
    int tries = 0;
  };
  std::map<TaskId, Search> searches_;
};

}  // namespace muster
