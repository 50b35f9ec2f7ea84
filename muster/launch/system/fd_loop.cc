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

FdLoop::FdLoop(const Clock& clock) : clock_(clock), epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

FdLoop::~FdLoop() {
  if (epoll_ >= 0) close(epoll_);
}

void FdLoop::Watch(int fd, short events, std::function<void(short found)> ready) {
  Forget(fd);
  Entry& entry = entries_[fd];
  entry = {.events = events, .id = next_id_++, .polled = false, .ready = std::move(ready)};
  Register(fd, entry);
}

void FdLoop::SetEvents(int fd, short events) {
  const auto entry = entries_.find(fd);
  if (entry == entries_.end() || entry->second.events == events) return;
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
  entry.polled = epoll_ < 0 || epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0;
  // EPERM: a file on disk; ENOSPC: the user's share of all tables is used up.
  MUSTER_CHECK(!entry.polled || epoll_ < 0 || errno == EPERM || errno == ENOSPC || errno == ENOMEM);
  if (entry.polled) ++polled_;
}

void FdLoop::Unregister(int fd, Entry& entry) {
  if (entry.events == 0) return;
  if (std::exchange(entry.polled, false)) {
    --polled_;
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

void FdLoop::AwaitPolled(int timeout, std::vector<Ready>& ready) const {
  std::vector<pollfd> fds = {{.fd = epoll_, .events = POLLIN, .revents = 0}};  // -1 is ignored
  for (const auto& [fd, entry] : entries_)
    if (entry.polled) fds.push_back({.fd = fd, .events = entry.events, .revents = 0});
  if (poll(fds.data(), fds.size(), timeout) <= 0) return;
  for (const pollfd& one : fds)
    if (one.revents != 0 && one.fd != epoll_) ready.push_back({one.fd, entries_.at(one.fd).id, one.revents});
}

void FdLoop::RunOnce(absl::Time deadline) {
  ++rounds_;
  std::vector<Ready> ready;
  int timeout = MillisecondsUntil(deadline, clock_.Now());
  if (polled_ > 0 || epoll_ < 0) AwaitPolled(std::exchange(timeout, 0), ready);
  std::array<epoll_event, kMostInOneRound> events;
  const int count = epoll_ < 0 ? 0 : epoll_wait(epoll_, events.data(), kMostInOneRound, timeout);
  MUSTER_CHECK(count >= 0 || errno == EINTR);
  for (int i = 0; i < count; ++i) {
    const uint64_t key = events[i].data.u64;
    ready.push_back(
        {static_cast<int>(key & 0xffffffff), static_cast<uint32_t>(key >> 32), static_cast<short>(events[i].events)});
  }
  // In the order of their numbers, so that one round is like another.
  std::sort(ready.begin(), ready.end(), [](const Ready& a, const Ready& b) { return a.fd < b.fd; });
  for (const Ready& one : ready) CallBack(one.fd, one.id, one.found);
}

}  // namespace muster
