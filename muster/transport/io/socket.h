// An owned socket (or any file descriptor), closed by the destructor. Internal to tcp/.
#pragma once

#include <unistd.h>

#include <utility>

namespace muster {

class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    if (this != &other) {
      Close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Socket() { Close(); }

  int fd() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  void Close() {
    if (valid()) close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

}  // namespace muster
