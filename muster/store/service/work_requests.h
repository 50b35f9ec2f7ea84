// The work queue of ps 0: what is asked of it, how far each worker's updates have come and who is gone, which the ps
// alone knows; what the arena keeps of it, and what checkpoints have. Lives on the store's event loop.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

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
  // `queue`: null for one of its own. `clients` must outlive it.
  WorkRequests(std::shared_ptr<WorkQueue> queue, const ClientTable& clients);

  // There is the memory of an earlier life of this ps.
  void Recover(Arena& arena);
  // Other values are about to be loaded, and this is the WorkState that belongs to them (empty: there is none). What
  // the arena is to keep with them. InvalidArgument: no such state.
  absl::StatusOr<std::string> Load(Arena& arena, const std::string& state);

  // The sender is known and alive. Errors as WorkQueue::Take's. `arena`: null as long as there is no model.
  absl::StatusOr<TakeWorkReply> Take(const TakeWorkRequest& request, Arena* arena, absl::Time now);
  void GiveUp(const GiveUpWorkRequest& request, Arena& arena);

  // As it is now, as a WorkState; empty: nothing is shared out. Under the arena's CountLock.
  std::string Save(Arena& arena);

  // OK, or Aborted: what the push brings is others' now, for its sender was taken for dead.
  [[nodiscard]] static absl::Status Check(const PushPullRequest& message, const std::string& task, Arena& arena);

  std::optional<WorkQueue::View> Describe() const { return queue_->Describe(); }

 private:
  void Note(Arena& arena, int client);
  void ReturnOfTheGone(Arena& arena, absl::Time now);
  void Keep(Arena& arena);

  const std::shared_ptr<WorkQueue> queue_;
  const ClientTable& clients_;
  bool changed_ = false;  // since it was kept
  bool warned_ = false;
};

}  // namespace muster
