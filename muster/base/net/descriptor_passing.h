// A file descriptor on its way to another process, through a unix socket (SCM_RIGHTS), beside one byte. Not for
// streams that carry anything else. Thread-safe.
#pragma once

namespace muster {

// The receiver gets a descriptor of its own for the same file; `fd` stays the caller's. False: the socket takes it not.
[[nodiscard]] bool SendDescriptor(int socket, int fd);

// Waits for as long as the socket's SO_RCVTIMEO says. The caller closes it; it is closed on exec. -1: the other side
// has gone, or has sent something else.
[[nodiscard]] int ReceiveDescriptor(int socket);

}  // namespace muster
