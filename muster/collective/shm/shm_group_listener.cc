#include "muster/collective/shm/shm_group_listener.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "muster/base/net/abstract_address.h"
#include "muster/base/status_macros.h"
#include "muster/transport/handshake.h"

namespace muster {
namespace {

// Rank 0 has sent the member before it says so.
constexpr timeval kAnswerPatience = {.tv_sec = 5, .tv_usec = 0};

// The message of a rank that connects.
struct GroupHello {
  char magic[8] = {'m', 'u', 's', 't', 'e', 'r', 'c', '1'};
  char ticket[kShmTicketBytes] = {};
  uint32_t rank = 0;
};

std::string RandomText() {
  const HandshakeNonce nonce = RandomNonce();
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(nonce.data()), kShmTicketBytes / 2));
}

bool IsOfThisUser(int socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ShmGroupListener>> ShmGroupListener::Open(int size) {
  std::string name = absl::StrCat("muster-", RandomText());
  Socket listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const AbstractAddress address(name);
  if (!listener.valid() || bind(listener.fd(), address.get(), address.length) != 0 ||
      listen(listener.fd(), 2 * size) != 0)
    return absl::UnavailableError(absl::StrCat("no unix socket for the ranks of this host: ", std::strerror(errno)));
  return std::unique_ptr<ShmGroupListener>(new ShmGroupListener(std::move(name), std::move(listener), size));
}

ShmGroupListener::ShmGroupListener(std::string name, Socket listener, int size)
    : name_(std::move(name)), ticket_(RandomText()), listener_(std::move(listener)), connections_(size) {}

bool ShmGroupListener::AllConnected() {
  for (;;) {
    Socket connection(accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection.valid()) break;
    Accept(std::move(connection));
  }
  return std::all_of(connections_.begin() + 1, connections_.end(), [](const Socket& one) { return one.valid(); });
}

void ShmGroupListener::Accept(Socket connection) {
  GroupHello hello;
  const GroupHello expected;
  if (!IsOfThisUser(connection.fd())) return;
  // It was sent before the connection is read here, or never will be.
  if (recv(connection.fd(), &hello, sizeof hello, 0) != sizeof hello) return;
  if (std::memcmp(hello.magic, expected.magic, sizeof hello.magic) != 0) return;
  if (std::memcmp(hello.ticket, ticket_.data(), kShmTicketBytes) != 0) return;
  if (hello.rank >= connections_.size()) return;
  connections_[hello.rank] = std::move(connection);
}

absl::StatusOr<std::unique_ptr<ShmMember>> ShmGroupListener::SendMembers() {
  ASSIGN_OR_RETURN(auto members, ShmMember::CreateAll(static_cast<int>(connections_.size())));
  for (size_t rank = 1; rank < connections_.size(); ++rank) {
    RETURN_IF_ERROR(members[rank]->SendThrough(connections_[rank].fd()));
    members[rank].reset();
  }
  return std::move(members[0]);
}

absl::StatusOr<std::unique_ptr<ShmGroupConnector>> ShmGroupConnector::Connect(const std::string& name,
                                                                              const std::string& ticket, int rank) {
  Socket connection(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const AbstractAddress address(name);
  if (!connection.valid() || connect(connection.fd(), address.get(), address.length) != 0)
    return absl::UnavailableError(absl::StrCat("rank 0 is not on this host (", std::strerror(errno), ")"));
  setsockopt(connection.fd(), SOL_SOCKET, SO_RCVTIMEO, &kAnswerPatience, sizeof kAnswerPatience);
  GroupHello hello{.rank = static_cast<uint32_t>(rank)};
  std::memcpy(hello.ticket, ticket.data(), std::min(ticket.size(), sizeof hello.ticket));
  // Another process might have taken that name: only this user's rank 0 is trusted.
  if (!IsOfThisUser(connection.fd()) || send(connection.fd(), &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello)
    return absl::PermissionDeniedError("rank 0 is another user's process: all ranks of a host must be one user's");
  return std::unique_ptr<ShmGroupConnector>(new ShmGroupConnector(std::move(connection)));
}

absl::StatusOr<std::unique_ptr<ShmMember>> ShmGroupConnector::Receive(int rank, int size) {
  return ShmMember::ReceiveFrom(connection_.fd(), rank, size);
}

}  // namespace muster
