#include "muster/launch/system/fd_loop.h"

#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "muster/base/check.h"

namespace muster {
namespace {

// What isn't taken in one round is ready in the next one.
constexpr int kMostInOneRound = 256;

// Rounded up, since a wait that ends too early would turn without end.
int MillisecondsUntil(absl::Time deadline, absl::Time now) {
  constexpr absl::Duration kLongest = absl::Hours(1);
  if (deadline == absl::InfiniteFuture()) return -1;
  const absl::Duration left = std::clamp(deadline - now, absl::ZeroDuration(), kLongest);
  return static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1))));
}

}  // namespace

FdLoop::FdLoop(const Clock& clock) : clock_(clock), epoll_(epoll_create1(EPOLL_CLOEXEC)) { MUSTER_CHECK(epoll_ >= 0); }

FdLoop::~FdLoop() { close(epoll_); }

void FdLoop::Watch(int fd, short events, std::function<void(short found)> ready) {
  Forget(fd);
  Entry& entry = entries_[fd];
  entry = {.events = events, .id = next_id_++, .is_file = false, .ready = std::move(ready)};
  Register(fd, entry);
}

void FdLoop::SetEvents(int fd, short events) {
  const auto entry = entries_.find(fd);
  if (entry == entries_.end()) return;
  Unregister(fd, entry->second);
  entry->second.events = events;
  Register(fd, entry->second);
}

void FdLoop::Forget(int fd) {
  const auto entry = entries_.find(fd);
  if (entry == entries_.end()) return;
  Unregister(fd, entry->second);
  entries_.erase(entry);
}

// The kernel reports an end even of what nobody waits for, so an ignored descriptor isn't registered.
void FdLoop::Register(int fd, Entry& entry) {
  if (entry.events == 0) return;
  epoll_event event = {.events = static_cast<uint32_t>(entry.events), .data = {}};
  event.data.u64 = uint64_t{entry.id} << 32 | static_cast<uint32_t>(fd);
  entry.is_file = epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0;
  MUSTER_CHECK(!entry.is_file || errno == EPERM);
  if (entry.is_file) ++files_;
}

void FdLoop::Unregister(int fd, Entry& entry) {
  if (entry.events == 0) return;
  if (std::exchange(entry.is_file, false)) {
    --files_;
  } else {
    epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
  }
}

void FdLoop::CallBack(int fd, uint32_t id, short found) {
  const auto entry = entries_.find(fd);
  if (entry == entries_.end() || entry->second.id != id) return;  // a callback of this round forgot it
  const auto ready = entry->second.ready;                         // a copy: it may forget itself
  ready(found);
}

void FdLoop::RunOnce(absl::Time deadline) {
  ++rounds_;
  std::array<epoll_event, kMostInOneRound> events;
  const int timeout = files_ > 0 ? 0 : MillisecondsUntil(deadline, clock_.Now());
  const int count = epoll_wait(epoll_, events.data(), kMostInOneRound, timeout);
  MUSTER_CHECK(count >= 0 || errno == EINTR);
  struct Ready {
    int fd;
    uint32_t id;
    short found;
  };
  std::vector<Ready> ready;
  for (int i = 0; i < count; ++i) {
    const uint64_t key = events[i].data.u64;
    ready.push_back(
        {static_cast<int>(key & 0xffffffff), static_cast<uint32_t>(key >> 32), static_cast<short>(events[i].events)});
  }
  if (files_ > 0) {
    for (const auto& [fd, entry] : entries_)
      if (entry.is_file) ready.push_back({fd, entry.id, entry.events});
  }
  // In the order of their numbers, so that one round is like another.
  std::sort(ready.begin(), ready.end(), [](const Ready& a, const Ready& b) { return a.fd < b.fd; });
  for (const Ready& one : ready) CallBack(one.fd, one.id, one.found);
}

}  // namespace muster
