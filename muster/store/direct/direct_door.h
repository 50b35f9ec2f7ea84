// The ps's side of direct apply: lets processes on its host write in its arena, and sees to it that for each client row
// there is one at most. Lives on the store's event loop.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "muster/store/arena/arena.h"
#include "muster/store/direct/arena_port.h"
#include "muster/store/messages/messages.h"

namespace muster {

class DirectDoor {
 public:
  // `port` may be null: nobody gets in. It must outlive the door.
  explicit DirectDoor(ArenaPort* port) : port_(port) {}

  // For this incarnation of the client. NotFound: this ps gives its arena to nobody, or it alone can apply the updates
  // of its model. ResourceExhausted: it has no descriptors left.
  absl::StatusOr<OpenDirectReply> Open(Arena& arena, int client, uint64_t incarnation);
  // From now on the bearer of the ticket writes for the client. PermissionDenied: nobody has come with it.
  [[nodiscard]] absl::Status Enter(Arena& arena, int client, const std::string& ticket);
  // The client has said that it writes no more.
  static void Leave(Arena& arena, int client);
  // Before another process takes the row: kills the one that writes there, which its lease or its connections say is
  // gone (it may be stopped in the middle of an update), and undoes what it left half done. AlreadyExists: it isn't
  // dead yet, ask again.
  [[nodiscard]] absl::Status Vacate(Arena& arena, int client) const;

 private:
  ArenaPort* const port_;
};

}  // namespace muster
