#include "muster/launch/backends/local/memory_watch.h"

namespace muster {

void MemoryWatch::Add(const TaskId& task, pid_t pid, int64_t limit) {
  if (watched_.empty()) next_ = clock_.Now() + kEvery;
  watched_[task] = {pid, limit};
}

std::vector<TaskId> MemoryWatch::Look() {
  std::vector<TaskId> over;
  if (clock_.Now() < deadline()) return over;
  next_ = clock_.Now() + kEvery;
  for (const auto& [task, watched] : watched_)
    if (read_(watched.pid) > watched.limit) over.push_back(task);
  return over;
}

}  // namespace muster
