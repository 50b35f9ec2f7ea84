#include "muster/base/net/descriptor_passing.h"

#include <sys/socket.h>

#include <array>
#include <cstring>

#include "muster/base/os/uninterrupted.h"

namespace muster {
namespace {

// One byte and room for one descriptor.
struct Message {
  Message() {
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = control.data();
    header.msg_controllen = control.size();
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  char byte = 1;
  iovec data{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
};

}  // namespace

bool SendDescriptor(int socket, int fd) {
  Message message;
  cmsghdr* beside = CMSG_FIRSTHDR(&message.header);
  beside->cmsg_level = SOL_SOCKET;
  beside->cmsg_type = SCM_RIGHTS;
  beside->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(beside), &fd, sizeof fd);
  return Uninterrupted([&] { return sendmsg(socket, &message.header, MSG_NOSIGNAL); }) == 1;
}

int ReceiveDescriptor(int socket) {
  Message message;
  if (Uninterrupted([&] { return recvmsg(socket, &message.header, MSG_CMSG_CLOEXEC); }) != 1) return -1;
  const cmsghdr* beside = CMSG_FIRSTHDR(&message.header);
  int fd = -1;
  if (beside == nullptr || beside->cmsg_level != SOL_SOCKET || beside->cmsg_type != SCM_RIGHTS ||
      beside->cmsg_len != CMSG_LEN(sizeof fd))
    return -1;
  std::memcpy(&fd, CMSG_DATA(beside), sizeof fd);
  return fd;
}

}  // namespace muster
