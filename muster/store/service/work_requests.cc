#include "muster/store/service/work_requests.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/store/arena/count_lock.h"
#include "muster/store/arena/shared_memory_order.h"

namespace muster {

WorkRequests::WorkRequests(std::shared_ptr<WorkQueue> queue, const ClientTable& clients)
    : queue_(queue != nullptr ? std::move(queue) : std::make_shared<WorkQueue>(clients.clients().size())),
      clients_(clients) {}

void WorkRequests::Recover(Arena& arena) {
  WorkState state;
  const std::string kept = arena.KeptWork();
  if (kept.empty() || !Decode(kept, state).ok() || !ValidateWork(state.spec).ok()) return;
  queue_->Restore(state);
}

absl::StatusOr<std::string> WorkRequests::Load(Arena& arena, const std::string& state) {
  std::optional<WorkState> loaded;
  if (!state.empty()) {
    RETURN_IF_ERROR(Decode(state, loaded.emplace()));
    RETURN_IF_ERROR(ValidateWork(loaded->spec));
  }
  if (queue_->Load(loaded)) {
    const Arena::CountLock lock(arena);
    for (int i = 0; i < arena.layout().num_clients(); ++i) {
      uint64_t& returned = arena.client(i).work_returned;
      Publish(returned, std::max(returned, queue_->LastTicket(i)));
    }
  }
  const std::optional<WorkState> now = queue_->Save();
  return now ? Encode(*now) : std::string();
}

// Under the CountLock.
void WorkRequests::Note(Arena& arena, int client) {
  const ClientNumbers& numbers = arena.client(client).numbers;
  WorkQueue::Progress progress{numbers.work_counted, numbers.work_counted, numbers.work};
  if (arena.model().gated()) {
    // A contribution outlives its sender, but is in no checkpoint before its round has fired.
    const bool in_round = numbers.contributed == arena.header().gate.round + 1;
    progress = {numbers.work, in_round ? numbers.work_counted : numbers.work, numbers.work};
  }
  queue_->Note(client, progress);
}

void WorkRequests::ReturnOfTheGone(Arena& arena, absl::Time now) {
  for (int i = 0; i < arena.layout().num_clients(); ++i) {
    if (!queue_->Holds(i)) continue;
    const ClientTable::Client& client = clients_.clients()[static_cast<size_t>(i)];
    const bool gone = !clients_.Present(client, now) || client.incarnation != queue_->Incarnation(i);
    size_t units = 0;
    {
      // Nothing of it is counted from here on, even if it is alive.
      const Arena::CountLock lock(arena);
      Note(arena, i);
      if (!gone) continue;
      units = queue_->Return(i);
      if (units > 0) Publish(arena.client(i).work_returned, queue_->LastTicket(i));
    }
    if (units == 0) continue;
    changed_ = true;
    LogInfo(units, units == 1 ? " unit" : " units", " of the work queue that ", client.task, " had ",
            units == 1 ? "goes" : "go", " to others");
  }
}

absl::StatusOr<TakeWorkReply> WorkRequests::Take(const TakeWorkRequest& request, Arena* arena, absl::Time now) {
  if (arena == nullptr) return TakeWorkReply{.answer = WorkAnswer::kWait};
  ReturnOfTheGone(*arena, now);
  auto reply = queue_->Take(request);
  changed_ = changed_ || (reply.ok() && reply->answer == WorkAnswer::kUnit);
  // Comes first, so that a ps that dies now remembers in its next life what it has answered.
  Keep(*arena);
  return reply;
}

void WorkRequests::GiveUp(const GiveUpWorkRequest& request, Arena& arena) {
  const int client = static_cast<int>(request.stamp.client);
  {
    const Arena::CountLock lock(arena);
    Note(arena, client);
  }
  queue_->GiveUp(client, request.tickets);
  changed_ = true;
  Keep(arena);
}

void WorkRequests::Keep(Arena& arena) {
  if (!std::exchange(changed_, false)) return;
  const std::optional<WorkState> state = queue_->Save();
  if (!state || arena.KeepWork(Encode(*state)) || std::exchange(warned_, true)) return;
  LogWarning("the work queue has too many returned units to keep them: a restarted ps will have lost its state");
}

std::string WorkRequests::Save(Arena& arena) {
  for (int i = 0; i < arena.layout().num_clients(); ++i) Note(arena, i);
  const std::optional<WorkState> state = queue_->Save();
  return state ? Encode(*state) : std::string();
}

absl::Status WorkRequests::Check(const PushPullRequest& message, const std::string& task, Arena& arena) {
  if (message.work.from == 0) return absl::OkStatus();
  if (message.work.from > message.work.through)
    return absl::InvalidArgumentError(
        absl::StrCat("a push brings work from ticket ", message.work.from, " through ", message.work.through));
  const ClientRecord& record = arena.client(static_cast<int>(message.stamp.client));
  const uint64_t known = message.contributes ? record.numbers.last_applied : record.numbers.last_counted;
  // A push that was accepted before gets the same answer again.
  if (known >= message.stamp.sequence || message.work.from > record.work_returned) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("the units of the work queue that ", task,
                                         " had were given to others because it was taken for dead: it must join "
                                         "again"));
}

}  // namespace muster
