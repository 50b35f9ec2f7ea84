// Reads files that the kernel generates on each read, below /proc and /sys. Their subject may vanish at any moment, and
// reading then fails in the middle (a stream of the standard library throws there). Stateless, thread-safe.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <string>

#include "muster/base/os/uninterrupted.h"

namespace muster {

// Returns what could be read of the file; nullopt if it can't be opened.
inline std::optional<std::string> ReadKernelFile(const std::string& path) {
  const int fd = Uninterrupted([&] { return open(path.c_str(), O_RDONLY | O_CLOEXEC); });
  if (fd < 0) return std::nullopt;
  std::string text;
  std::array<char, 4096> piece;
  for (;;) {
    const ssize_t got = Uninterrupted([&] { return read(fd, piece.data(), piece.size()); });
    if (got <= 0) break;
    text.append(piece.data(), static_cast<size_t>(got));
  }
  close(fd);
  return text;
}

}  // namespace muster
