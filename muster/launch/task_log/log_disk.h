// The disk operations of a TaskLog; tests replace them by a full disk. Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace muster {

class LogDisk {
 public:
  virtual ~LogDisk() = default;
  // Opens a file for appending and reading, made if missing. Returns its descriptor, which the caller closes, or
  // -errno.
  virtual int Open(const std::string& path) = 0;
  // Returns how many of the bytes were written, maybe not all, or -errno. `bytes` isn't empty.
  virtual int64_t Write(int fd, std::string_view bytes) = 0;
};

// Returns the machine's disk, which lives for the whole process.
LogDisk& PosixLogDisk();

}  // namespace muster
