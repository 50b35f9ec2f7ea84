#include "muster/launch/backends/local/memory_watch.h"

namespace muster {

void MemoryWatch::Add(const TaskId& task, pid_t pid, int64_t limit) {
  if (watched_.empty()) next_ = clock_.Now() + kEvery;
  watched_[task] = {pid, limit};
}

std::vector<TaskId> MemoryWatch::Check() {
  std::vector<TaskId> over;
  if (clock_.Now() < deadline()) return over;
  next_ = clock_.Now() + kEvery;
  std::vector<pid_t> pids;
  for (const auto& [task, watched] : watched_) pids.push_back(watched.pid);
  const std::map<pid_t, int64_t> used = read_(pids);
  for (const auto& [task, watched] : watched_) {
    const auto bytes = used.find(watched.pid);
    if (bytes != used.end() && bytes->second > watched.limit) over.push_back(task);
  }
  return over;
}

}  // namespace muster
