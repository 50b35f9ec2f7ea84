// Enforces memory limits where control groups can't be used: measures each task's memory once a second and returns the
// tasks over their limit. Between two checks a task may use more. Memory is counted as the reader counts it (pages that
// processes share count more than once). Not thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/cluster/task_id.h"
#include "muster/launch/backends/backend.h"

namespace muster {

class MemoryWatch {
 public:
  static constexpr absl::Duration kEvery = absl::Seconds(1);
  using Reader = decltype(BackendOptions::resident_bytes);

  // Borrows `clock`, which must outlive it.
  MemoryWatch(const Clock& clock, Reader read) : clock_(clock), read_(std::move(read)) {}

  // Watches a task's new process.
  void Add(const TaskId& task, pid_t pid, int64_t limit);
  void Remove(const TaskId& task) { watched_.erase(task); }
  // Returns when to look again; InfiniteFuture if nothing is watched.
  absl::Time deadline() const { return watched_.empty() ? absl::InfiniteFuture() : next_; }
  // Checks if it is time, and returns the tasks that use more than their limit.
  std::vector<TaskId> Check();

 private:
  struct Watched {
    pid_t pid;
    int64_t limit;
  };

  // Constant after construction.
  const Clock& clock_;
  const Reader read_;

  std::map<TaskId, Watched> watched_;
  absl::Time next_ = absl::InfinitePast();
};

}  // namespace muster
