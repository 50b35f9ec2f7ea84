// What a TaskLog asks of the disk and what may go wrong there: tests put one in between that is full. Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace muster {

class LogDisk {
 public:
  virtual ~LogDisk() = default;
  // A file to append to and to read, made if it isn't there: its descriptor, which the caller closes; or -errno.
  virtual int Open(const std::string& path) = 0;
  // How many of the bytes were written, maybe not all; or -errno. `bytes` isn't empty.
  virtual int64_t Write(int fd, std::string_view bytes) = 0;
};

// The machine's. Lives for the whole process.
LogDisk& PosixLogDisk();

}  // namespace muster
