// The work queue of ps 0 with what only the ps knows: how far each worker's updates have come, which workers are gone,
// and what the arena and checkpoints keep of the queue. Lives on the store's event loop.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/store/arena/arena.h"
#include "muster/store/gates/client_table.h"
#include "muster/store/messages/messages.h"
#include "muster/store/work/work_queue.h"

namespace muster {

class WorkRequests {
 public:
  // `queue`: null to create one. `clients` must outlive it.
  WorkRequests(std::shared_ptr<WorkQueue> queue, const ClientTable& clients);

  // Takes over the memory of an earlier life of this ps.
  void Recover(Arena& arena);
  // Other values are about to be loaded; `state` is their WorkState (empty: none). Returns what the arena must keep
  // with them. InvalidArgument: not a WorkState.
  absl::StatusOr<std::string> Load(Arena& arena, const std::string& state);

  // The sender must be known and alive. Errors as WorkQueue::Take's. `arena`: null while there is no model.
  absl::StatusOr<TakeWorkReply> Take(const TakeWorkRequest& request, Arena* arena, absl::Time now);
  void GiveUp(const GiveUpWorkRequest& request, Arena& arena);

  // Returns the current WorkState; empty: no work is shared out. Under the arena's CountLock.
  std::string Save(Arena& arena);

  // Aborted: the push's units were given to others, because its sender was taken for dead.
  [[nodiscard]] static absl::Status Check(const PushPullRequest& message, const std::string& task, Arena& arena);

  std::optional<WorkQueue::View> Describe() const { return queue_->Describe(); }

 private:
  void Note(Arena& arena, int client);
  void ReturnOfTheGone(Arena& arena, absl::Time now);
  void Keep(Arena& arena);

  const std::shared_ptr<WorkQueue> queue_;
  const ClientTable& clients_;
  bool changed_ = false;  // since it was last kept
  bool warned_ = false;
};

}  // namespace muster
