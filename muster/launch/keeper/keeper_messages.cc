#include "muster/launch/keeper/keeper_messages.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/os/uninterrupted.h"

namespace muster {
namespace {

// Beside a task's memory and ports, a message has a few descriptors.
constexpr size_t kMostDescriptors = 16;
// A program's arguments and environment can't be larger: the kernel's limit of a stack of 8 MiB is a quarter of it.
constexpr uint32_t kMostMessageBytes = 16u << 20;

struct Header {
  uint32_t size;
  uint32_t kind;
};

bool WriteAll(int socket, const char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t put = Uninterrupted([&] { return send(socket, bytes, size, MSG_NOSIGNAL); });
    if (put <= 0) return false;
    bytes += put;
    size -= static_cast<size_t>(put);
  }
  return true;
}

bool ReadAll(int socket, char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t got = Uninterrupted([&] { return recv(socket, bytes, size, 0); });
    if (got <= 0) return false;
    bytes += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

union Control {
  cmsghdr alignment;
  char bytes[CMSG_SPACE(kMostDescriptors * sizeof(int))];
};

std::vector<int> DescriptorsOf(msghdr& message) {
  std::vector<int> descriptors;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    descriptors.resize((part->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    std::memcpy(descriptors.data(), CMSG_DATA(part), descriptors.size() * sizeof(int));
  }
  return descriptors;
}

}  // namespace

std::string MemoryName(const TaskId& task) { return absl::StrCat("memory of ", task.ToString()); }

StartMessage StartMessage::Of(const NewTask& task, const ChildSpec& spec) {
  StartMessage message{.label = task.label,
                       .about = task.about,
                       .memory = task.has_memory ? MemoryName(task.task) : "",
                       .program = spec.program,
                       .arguments = spec.arguments,
                       .environment = spec.environment,
                       .directory = spec.directory,
                       .mounts = {},
                       .umask = spec.umask.has_value() ? static_cast<int64_t>(*spec.umask) : -1,
                       .takes_input = spec.takes_input};
  for (const ProcessMount& mount : spec.mounts)
    message.mounts.push_back({.host = mount.host, .path = mount.path, .writable = mount.writable});
  return message;
}

ChildSpec StartMessage::ToSpec() const {
  ChildSpec spec;
  spec.program = program;
  spec.arguments = arguments;
  spec.environment = environment;
  spec.directory = directory;
  for (const MountMessage& mount : mounts)
    spec.mounts.push_back({.host = mount.host, .path = mount.path, .writable = mount.writable});
  if (umask >= 0) spec.umask = static_cast<mode_t>(umask);
  spec.takes_input = takes_input;
  return spec;
}

absl::Status SendToKeeper(int socket, KeeperKind kind, const std::string& body, const std::vector<int>& descriptors) {
  MUSTER_CHECK(descriptors.size() <= kMostDescriptors);
  if (body.size() > kMostMessageBytes) return absl::InvalidArgumentError("a message to the guard is too long");
  Header header = {static_cast<uint32_t>(body.size()), static_cast<uint32_t>(kind)};
  iovec part = {&header, sizeof header};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  Control control{};
  if (!descriptors.empty()) {
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size() * sizeof(int));
  }
  const ssize_t put = Uninterrupted([&] { return sendmsg(socket, &message, MSG_NOSIGNAL); });
  const bool sent = put > 0 && WriteAll(socket, reinterpret_cast<const char*>(&header) + put, sizeof header - put) &&
                    WriteAll(socket, body.data(), body.size());
  return sent ? absl::OkStatus() : absl::UnavailableError("the process that keeps the tasks is gone");
}

std::optional<KeeperMessage> ReceiveFromKeeper(int socket) {
  Header header{};
  iovec part = {&header, sizeof header};
  Control control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  const ssize_t got = Uninterrupted([&] { return recvmsg(socket, &message, MSG_CMSG_CLOEXEC); });
  if (got <= 0) return std::nullopt;
  KeeperMessage received{.kind = KeeperKind::kReady, .body = "", .descriptors = DescriptorsOf(message)};
  bool whole = ReadAll(socket, reinterpret_cast<char*>(&header) + got, sizeof header - static_cast<size_t>(got)) &&
               header.size <= kMostMessageBytes;
  if (whole) {
    received.kind = static_cast<KeeperKind>(header.kind);
    received.body.resize(header.size);
    whole = ReadAll(socket, received.body.data(), received.body.size());
  }
  if (whole) return received;
  for (const int fd : received.descriptors) close(fd);
  return std::nullopt;
}

}  // namespace muster
