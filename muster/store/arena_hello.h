// What a direct worker says first on the unix socket of a ps (arena_port.h), and how the socket is found. One message
// there, one back: a byte, with the descriptor of the arena's memory beside it. docs/store_protocol.md, "Direct apply".
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace muster {

constexpr size_t kTicketBytes = 32;

struct ArenaHello {
  char magic[8] = {'m', 'u', 's', 't', 'e', 'r', 'd', '1'};
  char ticket[kTicketBytes] = {};  // what ps and worker have agreed on over their channel, where the job token counts
  uint64_t pid_namespace = 0;      // of the worker: robust locks know their owner by a number that has to mean the same
};

// In the abstract namespace: it lies in no file system, and is gone with the last process that holds it.
struct AbstractAddress {
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
