#include "muster/store/direct/arena_attachment.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster/base/net/abstract_address.h"
#include "muster/base/net/descriptor_passing.h"
#include "muster/base/os/process_identity.h"
#include "muster/base/os/uninterrupted.h"
#include "muster/base/status_macros.h"
#include "muster/store/direct/attach_message.h"

namespace muster {
namespace {

// The ps's port has its own thread, which answers at once.
constexpr timeval kAnswerPatience = {.tv_sec = 5, .tv_usec = 0};

bool SameFile(int one, int other) {
  struct stat a {
  }, b{};
  return fstat(one, &a) == 0 && fstat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ArenaAttachment>> ArenaAttachment::Connect(const std::string& socket_name,
                                                                          const std::string& ticket) {
  const int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (connection < 0)
    return absl::ResourceExhaustedError(absl::StrCat("no socket to fetch its memory by: ", std::strerror(errno)));
  const AbstractAddress address(socket_name);
  if (Uninterrupted([&] { return connect(connection, address.get(), address.length); }) != 0) {
    const int error = errno;
    close(connection);
    // No such name, as for every ps on another host, looks like an error and is none.
    return absl::UnavailableError(absl::StrCat(
        "it is not on this host", error == ECONNREFUSED ? "" : absl::StrCat(" (", std::strerror(error), ")")));
  }
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &kAnswerPatience, sizeof kAnswerPatience);
  AttachMessage hello{.pid_namespace = PidNamespace()};
  std::memcpy(hello.ticket, ticket.data(), std::min(ticket.size(), sizeof hello.ticket));
  ucred peer{};
  socklen_t length = sizeof peer;
  int fd = -1;
  // Checks who owns the socket: another user might have taken that name.
  if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid() &&
      Uninterrupted([&] { return send(connection, &hello, sizeof hello, MSG_NOSIGNAL); }) == sizeof hello)
    fd = ReceiveDescriptor(connection);
  if (fd < 0) {
    close(connection);
    return absl::PermissionDeniedError(
        "it does not give its memory to this process: both must run as the same user, in the same pid namespace");
  }
  auto memory = ArenaMemory::Adopt(fd);
  close(fd);
  if (!memory.ok()) {
    close(connection);
    return memory.status();
  }
  return std::unique_ptr<ArenaAttachment>(new ArenaAttachment(connection, *std::move(memory)));
}

ArenaAttachment::ArenaAttachment(int connection, std::shared_ptr<ArenaMemory> memory)
    : connection_(connection), memory_(std::move(memory)) {}

ArenaAttachment::~ArenaAttachment() { close(connection_); }

absl::Status ArenaAttachment::Attach(ArenaAttachment* before, int num_clients, ArenaProbe* probe) {
  if (before != nullptr && before->arena_ && SameFile(before->arena_->memory().fd(), memory_->fd())) {
    arena_ = before->arena_;
    given_out_ = before->given_out_;
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(arena_, Arena::Attach(memory_, num_clients, probe));
  return absl::OkStatus();
}

MutableByteSpan ArenaAttachment::value(int slice) const {
  const ArenaLayout::Slice& layout = arena_->layout().slices()[slice];
  return {arena_->memory().data() + layout.value_offset, layout.bytes};
}

MutableByteSpan ArenaAttachment::GiveOut(int slice) {
  given_out_.insert(slice);
  return value(slice);
}

void ArenaAttachment::TakeAlong() {
  constexpr uint64_t kPage = 4096;
  uint64_t begin = 0, end = 0;  // consecutive pages
  const auto take = [&] {
    if (begin < end) arena_->shared_memory()->MakePrivate(begin, end - begin);
  };
  for (const int slice : given_out_) {
    const ArenaLayout::Slice& layout = arena_->layout().slices()[slice];
    const uint64_t first = layout.value_offset / kPage * kPage;
    if (first > end) {
      take();
      begin = first;
    }
    end = (layout.value_offset + layout.bytes + kPage - 1) / kPage * kPage;
  }
  take();
}

bool ArenaAttachment::host_alive() const {
  char byte = 0;
  const ssize_t got = recv(connection_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got < 0 && (errno == EAGAIN || errno == EINTR);
}

}  // namespace muster
