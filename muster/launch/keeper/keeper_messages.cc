#include "muster/launch/keeper/keeper_messages.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/net/descriptor_passing.h"

namespace muster {
namespace {

// A program's arguments and environment can't be larger: the kernel's limit of a stack of 8 MiB is a quarter of it.
constexpr uint32_t kMostMessageBytes = 16u << 20;

struct Header {
  uint32_t size;
  uint32_t kind;
  uint32_t descriptors;
};

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
                       .takes_input = spec.takes_input,
                       .memory_limit = spec.memory_limit};
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
  spec.memory_limit = memory_limit;
  return spec;
}

// One call takes header, body and descriptors, so that the other end seldom finds a part of a message.
absl::Status SendToKeeper(int socket, KeeperKind kind, const std::string& body, const std::vector<int>& descriptors) {
  // A task with 64 ports has twice as many.
  MUSTER_CHECK(descriptors.size() <= kMostPassedDescriptors);
  if (body.size() > kMostMessageBytes) return absl::InvalidArgumentError("a message to the guard is too long");
  const Header header = {static_cast<uint32_t>(body.size()), static_cast<uint32_t>(kind),
                         static_cast<uint32_t>(descriptors.size())};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes += body;
  for (size_t sent = 0; sent < bytes.size();) {
    const std::span<const int> beside = sent == 0 ? std::span<const int>(descriptors) : std::span<const int>();
    const ssize_t put = SendWithDescriptors(socket, std::string_view(bytes).substr(sent), beside);
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
  ReceivedBytes received = ReceiveWithDescriptors(socket, piece, sizeof piece, wait ? 0 : MSG_DONTWAIT);
  if (received.bytes < 0 && errno == EAGAIN) return true;
  if (received.bytes <= 0) return false;
  bytes_.append(piece, static_cast<size_t>(received.bytes));
  if (!received.descriptors.empty() || received.some_are_missing)
    descriptors_.push_back(std::move(received.descriptors));
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
