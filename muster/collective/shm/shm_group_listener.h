// How the ranks of one host get the memory that they share. Rank 0 opens a unix socket and tells the others its name
// and a ticket over their authenticated channel. A rank that reaches the socket is on this host, whatever the hosts'
// names, and must run as the same user. The socket is in the abstract namespace: nothing remains, whichever process
// dies and how. docs/collectives.md, "Shared memory". Not thread-safe.
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
class ShmGroupListener {
 public:
  // Unavailable: the system provides no socket.
  static absl::StatusOr<std::unique_ptr<ShmGroupListener>> Open(int size);

  const std::string& name() const { return name_; }
  const std::string& ticket() const { return ticket_; }

  // Accepts all ranks that have connected so far; true once all other ranks are there. Doesn't block.
  bool AllConnected();
  // Creates a new group: sends every rank its member and returns rank 0's. Call once.
  absl::StatusOr<std::unique_ptr<ShmMember>> SendMembers();

 private:
  ShmGroupListener(std::string name, Socket listener, int size);
  void Accept(Socket connection);

  const std::string name_;
  const std::string ticket_;
  const Socket listener_;
  std::vector<Socket> connections_;  // by rank
};

// Another rank's side.
class ShmGroupConnector {
 public:
  // Doesn't block. Unavailable: this host has no such socket. PermissionDenied: it is another user's.
  static absl::StatusOr<std::unique_ptr<ShmGroupConnector>> Connect(const std::string& name, const std::string& ticket,
                                                                    int rank);
  // Call when rank 0 has announced the members. Blocks for a few seconds at most.
  absl::StatusOr<std::unique_ptr<ShmMember>> Receive(int rank, int size);

 private:
  explicit ShmGroupConnector(Socket connection) : connection_(std::move(connection)) {}
  const Socket connection_;
};

}  // namespace muster
