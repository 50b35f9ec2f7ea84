#include "muster/transport/io/poller.h"

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

// Larger than any slot's id.
constexpr uint64_t kWake = ~uint64_t{0};
constexpr uint64_t kTimer = kWake - 1;
constexpr int64_t kNotSet = std::numeric_limits<int64_t>::max();
// One question to the kernel costs as much as this many looks at memory.
constexpr int kLooks = 32;
// How often in a row ready memory may make file descriptors wait.
constexpr int kMostMemoryAlone = 16;

int64_t SteadyNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// This thread's context switches so far.
int64_t ContextSwitches() {
  rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw + usage.ru_nivcsw;
}

void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
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
  // Asks for the peer's close only while nothing is read: a read sees it anyway.
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

// A signal may end this early: the caller checks the time.
int Poller::Poll(int milliseconds) {
  const int n = epoll_wait(epoll_.fd(), events_.data(), static_cast<int>(events_.size()), milliseconds);
  next_event_ = 0;
  event_count_ = n > 0 ? n : 0;
  return n;
}

void Poller::RemoveMemory(Memory* memory) {
  const auto at = std::find(memories_.begin(), memories_.end(), memory);
  MUSTER_CHECK(at != memories_.end());
  if (static_cast<size_t>(at - memories_.begin()) < next_memory_) --next_memory_;
  memories_.erase(at);
}

bool Poller::AnyMemoryReady() const {
  return std::any_of(memories_.begin(), memories_.end(), [](const Memory* memory) { return memory->Ready(); });
}

// True: memory is ready, and this time file descriptors needn't be checked.
bool Poller::PollMemoryAlone() {
  next_memory_ = 0;
  if (memories_.empty() || memory_alone_ >= kMostMemoryAlone || !AnyMemoryReady()) {
    memory_alone_ = 0;
    return false;
  }
  ++memory_alone_;
  next_event_ = 0;
  event_count_ = 0;
  return true;
}

// Polls as long as that is worth a core. True: something is ready.
bool Poller::StayAwake() {
  do {
    for (int i = 0; !memories_.empty() && i < kLooks; ++i) {
      if (AnyMemoryReady()) {
        next_event_ = 0;
        event_count_ = 0;
        return true;
      }
      Pause();
    }
    if (Poll(0) != 0) return true;
    sched_yield();
  } while (busy_wait_.GoesOn(SteadyNanoseconds(), ContextSwitches()));
  return false;
}

void Poller::Sleep() {
  for (Memory* memory : memories_) memory->SetAsleep(true);
  Poll(AnyMemoryReady() ? 0 : -1);
  for (Memory* memory : memories_) memory->SetAsleep(false);
}

void Poller::Wait(absl::Duration time) {
  if (PollMemoryAlone()) return;
  if (time <= absl::ZeroDuration()) {
    Poll(0);
    return;
  }
  const int64_t start = SteadyNanoseconds();
  if (time != absl::InfiniteDuration()) SetTimer(start + std::min(absl::ToInt64Nanoseconds(time), kNotSet / 2));
  if (busy_wait_.Begin(start, ContextSwitches())) {
    if (StayAwake()) {
      busy_wait_.EndAwake();
      return;
    }
  }
  Sleep();
  busy_wait_.EndAsleep(SteadyNanoseconds());
}

// A timer that goes off too early does no harm: the next wait sets it again.
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
  while (next_memory_ < memories_.size()) {
    Memory* memory = memories_[next_memory_++];
    if (!memory->Ready()) continue;
    memory->OnReady();
    return true;
  }
  return false;
}

void Poller::Wake() {
  const uint64_t once = 1;
  [[maybe_unused]] const ssize_t n = write(wake_.fd(), &once, sizeof(once));
}

}  // namespace muster
