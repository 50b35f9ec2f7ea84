// Passes a file descriptor to another process through a unix socket (SCM_RIGHTS), with one byte of data. Not for
// streams that carry anything else. Thread-safe.
#pragma once

namespace muster {

// The receiver gets its own descriptor for the same file; `fd` stays the caller's. Returns false if the socket refuses
// it.
[[nodiscard]] bool SendDescriptor(int socket, int fd);

// Waits as long as the socket's SO_RCVTIMEO allows. The caller must close the descriptor; it is close-on-exec. Returns
// -1 if the other side has gone or sent something else.
[[nodiscard]] int ReceiveDescriptor(int socket);

}  // namespace muster
