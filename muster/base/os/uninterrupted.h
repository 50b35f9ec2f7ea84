// System calls that a signal's handler may break off (EINTR): those that wait for a socket with a time limit do so even
// if the handler was installed with SA_RESTART. Thread-safe.
#pragma once

#include <cerrno>

namespace muster {

// The result of `call` (negative: errno says why), made again as often as a signal breaks it off. A time limit begins
// anew then.
template <typename Call>
auto Uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace muster
