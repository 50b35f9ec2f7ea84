#include "muster/launch/system/later_calls.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

#include "muster/base/check.h"

namespace muster {

LaterCalls::LaterCalls(FdLoop& loop) : loop_(loop), wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  MUSTER_CHECK(wake_fd_ >= 0);
  loop_.Watch(wake_fd_, POLLIN, [this](short) { MakeCalls(); });
}

LaterCalls::~LaterCalls() {
  loop_.Forget(wake_fd_);
  close(wake_fd_);
}

void LaterCalls::Add(std::function<void()> call) {
  calls_.push_back(std::move(call));
  eventfd_write(wake_fd_, 1);
}

void LaterCalls::MakeCalls() {
  eventfd_t ignored;
  eventfd_read(wake_fd_, &ignored);
  for (size_t left = calls_.size(); left > 0 && !calls_.empty(); --left) {
    const std::function<void()> call = std::move(calls_.front());
    calls_.pop_front();
    call();
  }
}

}  // namespace muster
