// The streams of commands that speak a protocol on their stdin and stdout. Stateless.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/base/os/uninterrupted.h"

namespace muster {

// Blocks until all bytes are written.
[[nodiscard]] inline absl::Status WriteToStdout(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = Uninterrupted([&] { return write(STDOUT_FILENO, bytes.data(), bytes.size()); });
    if (put < 0) return absl::ErrnoToStatus(errno, "cannot answer");
    bytes.remove_prefix(put);
  }
  return absl::OkStatus();
}

// Blocks until there is something. Returns some bytes; "" at the end of the input.
inline absl::StatusOr<std::string> ReadFromStdin() {
  std::string bytes(64 << 10, '\0');
  const ssize_t got = Uninterrupted([&] { return read(STDIN_FILENO, bytes.data(), bytes.size()); });
  if (got < 0) return absl::ErrnoToStatus(errno, "cannot read");
  bytes.resize(static_cast<size_t>(got));
  return bytes;
}

}  // namespace muster
