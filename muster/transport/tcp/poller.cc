#include "muster/transport/tcp/poller.h"

#include <sched.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "muster/base/check.h"

namespace muster {
namespace {

// Beyond every slot.
constexpr uint64_t kWake = ~uint64_t{0};
constexpr uint64_t kTimer = kWake - 1;
constexpr int64_t kNotSet = std::numeric_limits<int64_t>::max();

int64_t SteadyNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Of this thread.
int64_t ContextSwitches() {
  rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw + usage.ru_nivcsw;
}

bool AddInput(int epoll, int fd, uint64_t id) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = id;
  return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

}  // namespace

Poller::Poller()
    : epoll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      timer_(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)),
      timer_set_(kNotSet) {
  MUSTER_CHECK(epoll_.valid() && AddInput(epoll_.fd(), wake_.fd(), kWake) &&
               AddInput(epoll_.fd(), timer_.fd(), kTimer));
}

epoll_event Poller::EventFor(uint64_t id, Interest interest) {
  epoll_event event{};
  // A peer that has closed is only asked after while nothing is read: a read sees it anyway.
  event.events = interest.read ? EPOLLIN : EPOLLRDHUP;
  if (interest.write) event.events |= EPOLLOUT;
  event.data.u64 = id;
  return event;
}

Poller::Id Poller::Add(int fd, Interest interest, Watched* watched) {
  if (free_.empty()) {
    free_.push_back(static_cast<uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const uint32_t index = free_.back();
  free_.pop_back();
  Slot& slot = slots_[index];
  slot.fd = fd;
  slot.watched = watched;
  const uint64_t id = uint64_t{slot.generation} << 32 | index;
  epoll_event event = EventFor(id, interest);
  MUSTER_CHECK(epoll_ctl(epoll_.fd(), EPOLL_CTL_ADD, fd, &event) == 0);
  return Id{id};
}

Poller::Slot* Poller::Find(uint64_t id) {
  Slot& slot = slots_[static_cast<uint32_t>(id)];
  return slot.generation == id >> 32 && slot.watched != nullptr ? &slot : nullptr;
}

void Poller::Change(Id id, Interest interest) {
  const uint64_t number = static_cast<uint64_t>(id);
  epoll_event event = EventFor(number, interest);
  MUSTER_CHECK(epoll_ctl(epoll_.fd(), EPOLL_CTL_MOD, Find(number)->fd, &event) == 0);
}

void Poller::Remove(Id id) {
  const uint64_t number = static_cast<uint64_t>(id);
  Slot* slot = Find(number);
  MUSTER_CHECK(slot != nullptr);
  epoll_ctl(epoll_.fd(), EPOLL_CTL_DEL, slot->fd, nullptr);
  slot->watched = nullptr;
  ++slot->generation;
  free_.push_back(static_cast<uint32_t>(number));
}

// A signal may end it early: the caller looks at the time.
int Poller::Poll(int milliseconds) {
  const int n = epoll_wait(epoll_.fd(), events_.data(), static_cast<int>(events_.size()), milliseconds);
  next_event_ = 0;
  event_count_ = n > 0 ? n : 0;
  return n;
}

void Poller::Wait(absl::Duration time) {
  if (time <= absl::ZeroDuration()) {
    Poll(0);
    return;
  }
  const int64_t start = SteadyNanoseconds();
  if (time != absl::InfiniteDuration()) SetTimer(start + std::min(absl::ToInt64Nanoseconds(time), kNotSet / 2));
  if (busy_wait_.Begin(start, ContextSwitches())) {
    do {
      if (Poll(0) != 0) {
        busy_wait_.EndAwake();
        return;
      }
      sched_yield();
    } while (busy_wait_.GoesOn(SteadyNanoseconds(), ContextSwitches()));
  }
  Poll(-1);
  busy_wait_.EndAsleep(SteadyNanoseconds());
}

// A timer that goes off too early does no harm: the next wait sets it anew.
void Poller::SetTimer(int64_t wake) {
  if (timer_set_ <= wake) return;
  timer_set_ = wake;
  constexpr int64_t kSecond = 1000 * 1000 * 1000;
  itimerspec spec{};
  spec.it_value.tv_sec = wake / kSecond;
  spec.it_value.tv_nsec = wake % kSecond;
  MUSTER_CHECK(timerfd_settime(timer_.fd(), TFD_TIMER_ABSTIME, &spec, nullptr) == 0);
}

bool Poller::RunNext() {
  while (next_event_ < event_count_) {
    const epoll_event event = events_[next_event_++];
    if (event.data.u64 >= kTimer) {
      const bool timer = event.data.u64 == kTimer;
      uint64_t times = 0;
      [[maybe_unused]] const ssize_t n = read(timer ? timer_.fd() : wake_.fd(), &times, sizeof(times));
      if (timer) timer_set_ = kNotSet;
      continue;
    }
    Slot* slot = Find(event.data.u64);
    if (slot == nullptr) continue;  // removed meanwhile
    const bool broken = (event.events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP)) != 0;
    slot->watched->OnReady((event.events & EPOLLIN) != 0, (event.events & EPOLLOUT) != 0, broken);
    return true;
  }
  return false;
}

void Poller::Wake() {
  const uint64_t once = 1;
  [[maybe_unused]] const ssize_t n = write(wake_.fd(), &once, sizeof(once));
}

}  // namespace muster
