// How the ranks of one host come to the memory that they share: rank 0 opens a unix socket whose name and ticket it
// tells the others over their authenticated channel; who reaches it is on this host, whatever names the hosts have, and
// must run as the same user. The socket is in the abstract namespace: nothing is left behind, whoever dies how.
// docs/collectives.md, "Shared memory". Not thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/collective/shm/shm_member.h"
#include "muster/transport/io/socket.h"

namespace muster {

constexpr size_t kShmTicketBytes = 32;

// Rank 0's side.
class ShmGroupDoor {
 public:
  // Unavailable: the system gives no socket.
  static absl::StatusOr<std::unique_ptr<ShmGroupDoor>> Open(int size);

  const std::string& name() const { return name_; }
  const std::string& ticket() const { return ticket_; }

  // Lets everybody in who has knocked until now; true: all other ranks are there. Doesn't block.
  bool AllHaveCome();
  // A new group, of which every visitor gets its member and the caller rank 0's. Once.
  absl::StatusOr<std::unique_ptr<ShmMember>> GiveOut();

 private:
  ShmGroupDoor(std::string name, Socket listener, int size);
  void Admit(Socket visitor);

  const std::string name_;
  const std::string ticket_;
  const Socket listener_;
  std::vector<Socket> visitors_;  // by rank
};

// Another rank's side.
class ShmGroupVisit {
 public:
  // Doesn't block. Unavailable: there is no such door on this host. PermissionDenied: it is another user's.
  static absl::StatusOr<std::unique_ptr<ShmGroupVisit>> Knock(const std::string& name, const std::string& ticket,
                                                              int rank);
  // Once rank 0 has said that it gives out. Blocks for a few seconds at most.
  absl::StatusOr<std::unique_ptr<ShmMember>> Receive(int rank, int size);

 private:
  explicit ShmGroupVisit(Socket connection) : connection_(std::move(connection)) {}
  const Socket connection_;
};

}  // namespace muster
