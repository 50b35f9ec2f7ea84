// When tasks that find no host are tried again: their host is gone, and no other may have them. Not thread-safe.
#pragma once

#include <map>
#include <optional>

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
    bool is_news = true;  // the user hasn't been told of it for about a minute
  };
  // Returns nullopt once the task has been without a place for kPatience.
  std::optional<NextTry> Next(const TaskId& task, absl::Time now);
  void OnFound(const TaskId& task) { searches_.erase(task); }

 private:
  struct Search {
    absl::Time since;
    int tries = 0;
  };
  std::map<TaskId, Search> searches_;
};

}  // namespace muster
