// The ps's side of direct apply: lets processes on its host write in its arena, at most one for each client row. Lives
// on the store's event loop.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "muster/store/arena/arena.h"
#include "muster/store/direct/arena_listener.h"
#include "muster/store/messages/messages.h"

namespace muster {

class DirectAccess {
 public:
  // `port` must outlive this; if it is null, no process is let in.
  explicit DirectAccess(ArenaListener* port) : port_(port) {}

  // Opens the arena to this incarnation of the client. NotFound: this ps shares its arena with nobody, or must apply
  // the updates of its model itself. ResourceExhausted: it has no descriptors left.
  absl::StatusOr<OpenDirectReply> Open(Arena& arena, int client, uint64_t incarnation);
  // Makes the process that used the ticket the client's writer. PermissionDenied: no process came with it.
  [[nodiscard]] absl::Status Enter(Arena& arena, int client, const std::string& ticket);
  // Called when the client says that it writes no more.
  static void Leave(Arena& arena, int client);
  // Called before another process takes the row: kills the process that writes there, which is gone by its lease or its
  // connections (it may be stopped in the middle of an update), and undoes what it left half done. AlreadyExists: it
  // isn't dead yet; ask again.
  [[nodiscard]] absl::Status Evict(Arena& arena, int client) const;

 private:
  ArenaListener* const port_;
};

}  // namespace muster
