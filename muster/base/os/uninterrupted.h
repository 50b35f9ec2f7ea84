// Retries system calls that a signal handler interrupts (EINTR). Waits on a socket with a time limit are interrupted
// even if the handler was installed with SA_RESTART. Thread-safe.
#pragma once

#include <cerrno>

namespace muster {

// Returns the result of `call` (negative: see errno), repeated as often as a signal interrupts it. Each repetition
// restarts its time limit.
template <typename Call>
auto Uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace muster
