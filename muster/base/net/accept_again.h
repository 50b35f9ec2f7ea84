// What to do when a listening socket gives no connection for want of descriptors or memory: who asks again at once asks
// without end, for the socket stays ready. Who comes waits in its backlog meanwhile.
#pragma once

#include <cerrno>

#include "absl/time/time.h"

namespace muster {

constexpr absl::Duration kAcceptAgainAfter = absl::Milliseconds(100);

// `error` of an accept: the connection is still there, and the process can't have it now.
inline bool ShouldAcceptLater(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

}  // namespace muster
