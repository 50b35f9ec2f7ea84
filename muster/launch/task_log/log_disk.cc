#include "muster/launch/task_log/log_disk.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace muster {
namespace {

class MachineLogDisk final : public LogDisk {
 public:
  int Open(const std::string& path) override {
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    return fd >= 0 ? fd : -errno;
  }

  int64_t Write(int fd, std::string_view bytes) override {
    ssize_t written = -1;
    do {
      written = write(fd, bytes.data(), bytes.size());
    } while (written < 0 && errno == EINTR);
    return written >= 0 ? written : -errno;
  }
};

}  // namespace

LogDisk& PosixLogDisk() {
  static MachineLogDisk disk;
  return disk;
}

}  // namespace muster
