// The messages of the two ends of an upgrade before there is memory between them (docs/shared_memory.md, section 1).
// Plain values. Internal to the transport.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include "muster/transport/handshake.h"

namespace muster {

// The first message on the unix socket.
struct ShmHello {
  char magic[8] = {'M', 'U', 'S', 'T', 'S', 'H', 'M', '1'};
  HandshakeNonce nonce{};
};
static_assert(sizeof(ShmHello) == 40);

// The client has mapped the memory: its frames go through it from here on.
inline constexpr char kShmReady = 2;

// True if the other end of this unix socket runs as the same user.
inline bool IsSameUser(int socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

}  // namespace muster
