// Passes file descriptors to another process through a Unix socket (SCM_RIGHTS). The receiver gets its own descriptors
// for the same files, close-on-exec, which it must close; those that were sent stay the sender's. Thread-safe.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace muster {

// The kernel's SCM_MAX_FD: for one call.
inline constexpr size_t kMostPassedDescriptors = 253;

// Sends bytes, with descriptors beside the first of them. Returns how many bytes were taken, or -1 with errno, as
// sendmsg does; with one byte or more all descriptors have gone. Async-signal-safe.
ssize_t SendWithDescriptors(int socket, std::string_view bytes, std::span<const int> descriptors);

struct ReceivedBytes {
  ssize_t bytes = 0;              // -1: errno says why; 0: the end of the stream
  std::vector<int> descriptors;   // that have come with them
  bool some_are_missing = false;  // this process had no numbers left for others
};
// Reads up to `most` bytes. `flags` as of recvmsg. A read ends behind the bytes that descriptors came with, so there
// are those of one SendWithDescriptors at most.
ReceivedBytes ReceiveWithDescriptors(int socket, char* into, size_t most, int flags = 0);

// Sends one descriptor and a byte; not for streams that carry anything else. Returns false if the socket refuses it.
// Async-signal-safe.
[[nodiscard]] bool SendDescriptor(int socket, int fd);
// Waits as long as the socket's SO_RCVTIMEO allows. Returns -1 if the other side has gone or sent something else.
[[nodiscard]] int ReceiveDescriptor(int socket);

}  // namespace muster
