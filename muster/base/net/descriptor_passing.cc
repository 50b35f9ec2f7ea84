#include "muster/base/net/descriptor_passing.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "muster/base/os/uninterrupted.h"

namespace muster {
namespace {

union Control {
  cmsghdr alignment;
  char bytes[CMSG_SPACE(kMostPassedDescriptors * sizeof(int))];
};

}  // namespace

ssize_t SendWithDescriptors(int socket, std::string_view bytes, std::span<const int> descriptors) {
  if (descriptors.size() > kMostPassedDescriptors) {
    errno = EINVAL;
    return -1;
  }
  iovec part = {const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  Control control{};
  if (!descriptors.empty()) {
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
    cmsghdr* beside = CMSG_FIRSTHDR(&message);
    beside->cmsg_level = SOL_SOCKET;
    beside->cmsg_type = SCM_RIGHTS;
    beside->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(beside), descriptors.data(), descriptors.size() * sizeof(int));
  }
  return Uninterrupted([&] { return sendmsg(socket, &message, MSG_NOSIGNAL); });
}

ReceivedBytes ReceiveWithDescriptors(int socket, char* into, size_t most, int flags) {
  iovec part = {into, most};
  Control control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  ReceivedBytes received;
  received.bytes = Uninterrupted([&] { return recvmsg(socket, &message, MSG_CMSG_CLOEXEC | flags); });
  if (received.bytes <= 0) return received;
  for (cmsghdr* beside = CMSG_FIRSTHDR(&message); beside != nullptr; beside = CMSG_NXTHDR(&message, beside)) {
    if (beside->cmsg_level != SOL_SOCKET || beside->cmsg_type != SCM_RIGHTS) continue;
    std::vector<int> come((beside->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    std::memcpy(come.data(), CMSG_DATA(beside), come.size() * sizeof(int));
    received.descriptors.insert(received.descriptors.end(), come.begin(), come.end());
  }
  received.some_are_missing = (message.msg_flags & MSG_CTRUNC) != 0;
  return received;
}

bool SendDescriptor(int socket, int fd) { return SendWithDescriptors(socket, "\1", {&fd, 1}) == 1; }

int ReceiveDescriptor(int socket) {
  char byte = 0;
  const ReceivedBytes received = ReceiveWithDescriptors(socket, &byte, 1);
  if (received.bytes == 1 && received.descriptors.size() == 1) return received.descriptors.front();
  for (const int fd : received.descriptors) close(fd);
  return -1;
}

}  // namespace muster
