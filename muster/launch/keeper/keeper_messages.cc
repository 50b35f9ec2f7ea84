#include "muster/launch/keeper/keeper_messages.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/os/uninterrupted.h"

namespace muster {
namespace {

// The kernel's SCM_MAX_FD. A task with 64 ports has twice as many.
constexpr size_t kMostDescriptors = 253;
// A program's arguments and environment can't be larger: the kernel's limit of a stack of 8 MiB is a quarter of it.
constexpr uint32_t kMostMessageBytes = 16u << 20;

struct Header {
  uint32_t size;
  uint32_t kind;
  uint32_t descriptors;
};

union Control {
  cmsghdr alignment;
  char bytes[CMSG_SPACE(kMostDescriptors * sizeof(int))];
};

std::vector<int> DescriptorsOf(msghdr& message) {
  std::vector<int> descriptors;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    std::vector<int> come((part->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    std::memcpy(come.data(), CMSG_DATA(part), come.size() * sizeof(int));
    descriptors.insert(descriptors.end(), come.begin(), come.end());
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

// One call takes header, body and descriptors, so that the other end seldom finds a part of a message.
absl::Status SendToKeeper(int socket, KeeperKind kind, const std::string& body, const std::vector<int>& descriptors) {
  MUSTER_CHECK(descriptors.size() <= kMostDescriptors);
  if (body.size() > kMostMessageBytes) return absl::InvalidArgumentError("a message to the guard is too long");
  const Header header = {static_cast<uint32_t>(body.size()), static_cast<uint32_t>(kind),
                         static_cast<uint32_t>(descriptors.size())};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes += body;
  Control control{};
  for (size_t sent = 0; sent < bytes.size();) {
    iovec part = {bytes.data() + sent, bytes.size() - sent};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (sent == 0 && !descriptors.empty()) {
      message.msg_control = control.bytes;
      message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
      cmsghdr* rights = CMSG_FIRSTHDR(&message);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
      std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size() * sizeof(int));
    }
    const ssize_t put = Uninterrupted([&] { return sendmsg(socket, &message, MSG_NOSIGNAL); });
    if (put <= 0) return absl::UnavailableError("the process that keeps the tasks is gone");
    sent += static_cast<size_t>(put);
  }
  return absl::OkStatus();
}

KeeperReader::~KeeperReader() {
  for (const std::vector<int>& group : descriptors_)
    for (const int fd : group) close(fd);
}

bool KeeperReader::Read(int socket, bool wait) {
  char piece[16 << 10];
  iovec part = {piece, sizeof piece};
  Control control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  const int flags = MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT);
  const ssize_t got = Uninterrupted([&] { return recvmsg(socket, &message, flags); });
  if (got < 0 && errno == EAGAIN) return true;
  if (got <= 0) return false;
  bytes_.append(piece, static_cast<size_t>(got));
  // A read ends behind the bytes that descriptors came with, so there are those of one message at most. This process
  // may have had no numbers left for them.
  std::vector<int> come = DescriptorsOf(message);
  if (!come.empty() || (message.msg_flags & MSG_CTRUNC) != 0) descriptors_.push_back(std::move(come));
  return true;
}

std::optional<KeeperMessage> KeeperReader::Next() {
  Header header{};
  if (bytes_.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, bytes_.data(), sizeof header);
  if (bytes_.size() - sizeof header < header.size) return std::nullopt;
  KeeperMessage message{.kind = static_cast<KeeperKind>(header.kind),
                        .body = bytes_.substr(sizeof header, header.size)};
  bytes_.erase(0, sizeof header + header.size);
  if (header.descriptors == 0) return message;
  if (!descriptors_.empty()) {
    message.descriptors = std::move(descriptors_.front());
    descriptors_.pop_front();
  }
  message.whole = message.descriptors.size() == header.descriptors;
  return message;
}

std::optional<KeeperMessage> KeeperReader::Await(int socket) {
  std::optional<KeeperMessage> message = Next();
  while (!message.has_value()) {
    if (!Read(socket, /*wait=*/true)) return std::nullopt;
    message = Next();
  }
  return message;
}

}  // namespace muster
