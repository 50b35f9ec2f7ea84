// Ctrl-C and SIGTERM as a polite request: the first sets a flag and wakes whoever asked to be woken, the second ends
// the process as if nothing had been installed.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <thread>

namespace muster {

// Any number in one process; they hear of the same signals. The former handlers are back when the last one has gone.
class StopSignal {
 public:
  // `on_raise` runs on a thread of its own, once, soon after the first signal.
  explicit StopSignal(std::function<void()> on_raise);
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // Thread-safe and cheap.
  bool raised() const;

 private:
  void Wake();

  const int wake_;    // eventfd
  size_t place_ = 0;  // among the process's listeners
  std::atomic<bool> closing_{false};
  std::thread watcher_;
};

}  // namespace muster
