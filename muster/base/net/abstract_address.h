// The address of a unix socket in Linux's abstract namespace. It needs no file, disappears with the last process that
// holds it, and belongs to the network namespace, as TCP ports do. A plain value.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>
#include <string>

namespace muster {

struct AbstractAddress {
  // A name longer than some 100 bytes is cut to its beginning.
  explicit AbstractAddress(const std::string& name) {
    address.sun_family = AF_UNIX;
    const size_t bytes = name.size() < sizeof address.sun_path - 1 ? name.size() : sizeof address.sun_path - 1;
    std::memcpy(address.sun_path + 1, name.data(), bytes);
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }

  sockaddr_un address{};
  socklen_t length = 0;
};

}  // namespace muster
