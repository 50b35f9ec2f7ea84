#include "muster/launch/system/fd_loop.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "muster/base/check.h"

namespace muster {

void FdLoop::Watch(int fd, short events, std::function<void(short found)> ready) {
  entries_[fd] = {events, next_id_++, std::move(ready)};
}

void FdLoop::SetEvents(int fd, short events) {
  const auto entry = entries_.find(fd);
  if (entry != entries_.end()) entry->second.events = events;
}

void FdLoop::Forget(int fd) { entries_.erase(fd); }

void FdLoop::RunOnce(absl::Time deadline) {
  std::vector<pollfd> polled;
  std::vector<uint64_t> ids;
  for (const auto& [fd, entry] : entries_) {
    if (entry.events == 0) continue;
    polled.push_back({fd, entry.events, 0});
    ids.push_back(entry.id);
  }
  timespec timeout;
  if (deadline != absl::InfiniteFuture()) {
    timeout = absl::ToTimespec(std::max(deadline - clock_.Now(), absl::ZeroDuration()));
  }
  const int count =
      ppoll(polled.data(), polled.size(), deadline == absl::InfiniteFuture() ? nullptr : &timeout, nullptr);
  MUSTER_CHECK(count >= 0 || errno == EINTR);
  if (count <= 0) return;
  for (size_t i = 0; i < polled.size(); ++i) {
    if (polled[i].revents == 0) continue;
    const auto entry = entries_.find(polled[i].fd);
    if (entry == entries_.end() || entry->second.id != ids[i]) continue;  // a callback of this round forgot it
    const auto ready = entry->second.ready;                               // a copy: it may forget itself
    ready(polled[i].revents);
  }
}

}  // namespace muster
