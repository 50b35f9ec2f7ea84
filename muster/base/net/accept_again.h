// What to do when accept fails on a listening socket for want of descriptors or memory. Calling accept again at once
// would loop for ever, because the socket stays ready; the client waits in the backlog meanwhile.
#pragma once

#include <cerrno>

#include "absl/time/time.h"

namespace muster {

constexpr absl::Duration kAcceptAgainAfter = absl::Milliseconds(100);

// `error` is accept's errno. True: the connection is still pending, but the process can't take it now.
inline bool ShouldAcceptLater(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace muster
