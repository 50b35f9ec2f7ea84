// Turns Ctrl-C and SIGTERM into a polite request: the first signal sets a flag and calls every listener; the second
// ends the process as if no handler had been installed. A SIGTERM within a second after the first signal is the same
// request: engines signal all processes of a job, and then a launcher that was signalled, too, asks its tasks to end.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <thread>

namespace muster {

// A process may have any number of these; all are notified. The former handlers are restored when the last one is
// destroyed.
class StopSignal {
 public:
  // `on_raise` runs once, on its own thread, soon after the first signal.
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
