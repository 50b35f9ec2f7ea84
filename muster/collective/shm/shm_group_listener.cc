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

// The message of a visitor.
struct Knocking {
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
    : name_(std::move(name)), ticket_(RandomText()), listener_(std::move(listener)), visitors_(size) {}

bool ShmGroupListener::AllHaveCome() {
  for (;;) {
    Socket visitor(accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!visitor.valid()) break;
    Admit(std::move(visitor));
  }
  return std::all_of(visitors_.begin() + 1, visitors_.end(), [](const Socket& one) { return one.valid(); });
}

void ShmGroupListener::Admit(Socket visitor) {
  Knocking said;
  const Knocking expected;
  if (!IsOfThisUser(visitor.fd())) return;
  // It was sent before the connection is read here, or never will be.
  if (recv(visitor.fd(), &said, sizeof said, 0) != sizeof said) return;
  if (std::memcmp(said.magic, expected.magic, sizeof said.magic) != 0) return;
  if (std::memcmp(said.ticket, ticket_.data(), kShmTicketBytes) != 0) return;
  if (said.rank >= visitors_.size()) return;
  visitors_[said.rank] = std::move(visitor);
}

absl::StatusOr<std::unique_ptr<ShmMember>> ShmGroupListener::GiveOut() {
  ASSIGN_OR_RETURN(auto members, ShmMember::CreateAll(static_cast<int>(visitors_.size())));
  for (size_t rank = 1; rank < visitors_.size(); ++rank) {
    RETURN_IF_ERROR(members[rank]->SendThrough(visitors_[rank].fd()));
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
  Knocking said{.rank = static_cast<uint32_t>(rank)};
  std::memcpy(said.ticket, ticket.data(), std::min(ticket.size(), sizeof said.ticket));
  // Another process might have taken that name: only this user's rank 0 is trusted.
  if (!IsOfThisUser(connection.fd()) || send(connection.fd(), &said, sizeof said, MSG_NOSIGNAL) != sizeof said)
    return absl::PermissionDeniedError("rank 0 is another user's process: all ranks of a host must be one user's");
  return std::unique_ptr<ShmGroupConnector>(new ShmGroupConnector(std::move(connection)));
}

absl::StatusOr<std::unique_ptr<ShmMember>> ShmGroupConnector::Receive(int rank, int size) {
  return ShmMember::ReceiveFrom(connection_.fd(), rank, size);
}

}  // namespace muster
