#include "muster/store/arena_guest.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster/base/process_identity.h"
#include "muster/base/status_macros.h"
#include "muster/store/arena_hello.h"

namespace muster {
namespace {

// The ps's port has a thread of its own, which answers at once.
constexpr timeval kAnswerPatience = {.tv_sec = 5, .tv_usec = 0};

// -1: it gave none.
int ReceiveDescriptor(int socket) {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1) return -1;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(sizeof(int))) return -1;
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return fd;
}

bool SameFile(int one, int other) {
  struct stat a {
  }, b{};
  return fstat(one, &a) == 0 && fstat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ArenaGuest>> ArenaGuest::Visit(const std::string& socket_name,
                                                              const std::string& ticket) {
  const int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  const AbstractAddress address(socket_name);
  if (connection < 0 || connect(connection, address.get(), address.length) != 0) {
    const int error = errno;
    if (connection >= 0) close(connection);
    return absl::UnavailableError(absl::StrCat("it is not on this host (", std::strerror(error), ")"));
  }
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &kAnswerPatience, sizeof kAnswerPatience);
  ArenaHello hello{.pid_namespace = PidNamespace()};
  std::memcpy(hello.ticket, ticket.data(), std::min(ticket.size(), sizeof hello.ticket));
  ucred peer{};
  socklen_t length = sizeof peer;
  int fd = -1;
  // Whoever else might have taken that name: this user's ps is the only one to be believed.
  if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid() &&
      send(connection, &hello, sizeof hello, MSG_NOSIGNAL) == sizeof hello)
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
  return std::unique_ptr<ArenaGuest>(new ArenaGuest(connection, *std::move(memory)));
}

ArenaGuest::ArenaGuest(int connection, std::shared_ptr<ArenaMemory> memory)
    : connection_(connection), memory_(std::move(memory)) {}

ArenaGuest::~ArenaGuest() { close(connection_); }

absl::Status ArenaGuest::Attach(ArenaGuest* before, int num_clients, ArenaProbe* probe) {
  if (before != nullptr && before->arena_ && SameFile(before->arena_->memory().fd(), memory_->fd())) {
    arena_ = before->arena_;
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(arena_, Arena::Attach(memory_, num_clients, probe));
  return absl::OkStatus();
}

MutableByteSpan ArenaGuest::value(int slice) const {
  const ArenaLayout::Slice& layout = arena_->layout().slices()[slice];
  return {arena_->memory().data() + layout.value_offset, layout.bytes};
}

void ArenaGuest::TakeValuesAlong() {
  constexpr uint64_t kPage = 4096;
  const StoreModel& model = arena_->model();
  const auto& slices = arena_->layout().slices();
  // Run by run of slices between tables of rows, of which nobody has a part as his own.
  for (size_t i = 0; i < slices.size(); ++i) {
    const size_t first = i;
    while (i < slices.size() && model.variable(model.slices[i]).kind != VariableKind::kRows) ++i;
    if (i == first) continue;
    const uint64_t begin = slices[first].value_offset / kPage * kPage;
    arena_->shared_memory()->MakePrivate(begin, slices[i - 1].value_offset + slices[i - 1].bytes - begin);
  }
}

bool ArenaGuest::host_alive() const {
  char byte = 0;
  const ssize_t got = recv(connection_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got < 0 && (errno == EAGAIN || errno == EINTR);
}

}  // namespace muster
