// Calls that an FdLoop makes in one of its next rounds, in their order: how an object that must not call back from
// within its own methods says what it knows already. Used by the thread that runs the loop.
#pragma once

#include <deque>
#include <functional>

#include "muster/launch/system/fd_loop.h"

namespace muster {

class LaterCalls {
 public:
  // Borrows the loop, which must outlive it.
  explicit LaterCalls(FdLoop& loop);
  // Drops the calls that haven't been made.
  ~LaterCalls();
  LaterCalls(const LaterCalls&) = delete;
  LaterCalls& operator=(const LaterCalls&) = delete;

  // `call` may add further ones, which are made in a later round.
  void Add(std::function<void()> call);
  // Drops the calls that haven't been made. May be called from a call.
  void Clear() { calls_.clear(); }

 private:
  void MakeCalls();

  FdLoop& loop_;
  const int wake_fd_;  // eventfd
  std::deque<std::function<void()>> calls_;
};

}  // namespace muster
