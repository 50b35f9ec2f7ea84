// Look-ups and updates of single rows: who may ask, and when. The rest of the ps is in store_service.cc.
#include <algorithm>

#include "absl/status/status.h"
#include "muster/base/status_macros.h"
#include "muster/store/arena/shared_memory_order.h"
#include "muster/store/service/answer_memory.h"
#include "muster/store/service/store_service.h"

namespace muster {

absl::Status StoreService::CheckRows(StoreMethod method, ConnectionId connection, const RowsRequest& message,
                                     size_t bulk_bytes) {
  if (method == StoreMethod::kPushRows) RETURN_IF_ERROR(NeedTraining());
  RETURN_IF_ERROR(NeedModel());
  RETURN_IF_ERROR(clients_.Hear(message.stamp, connection, loop_.Now()));
  RETURN_IF_ERROR(CheckRowsRequest(arena_->model(), method, message, bulk_bytes));
  return CheckGeneration(message.generation);
}

absl::Status StoreService::On(const RowsRequest& message, IncomingCall& call) {
  // Looked at again although PrepareBulk did: see PushPullRequest.
  RETURN_IF_ERROR(CheckRows(call.method, call.connection, message, call.bulk.size()));
  if (call.method == StoreMethod::kPushRows) {
    if (!options_.lead) known_step_ = std::max(known_step_, message.global_step);
    const RuleSpec& rule = arena_->model().rule(arena_->model().slices[message.slice]);
    const int64_t global_step = options_.lead ? Observe(arena_->header().counters.global_step) : known_step_;
    RETURN_IF_ERROR(
        PushRows(*arena_, message, LearningRateAt(rule.schedule, rule.learning_rate, global_step), call.bulk));
    rows_.pushed += message.rows;
    call.responder.Send({});
    return absl::OkStatus();
  }
  const size_t bytes = GatheredBytes(arena_->model(), message);
  const AnswerMemory gathered(call.responder, buffers_, bytes);
  RETURN_IF_ERROR(GatherRows(*arena_, message, call.bulk, gathered.bytes));
  rows_.gathered += message.rows;
  bytes == 0 ? call.responder.Send({}) : call.responder.Send({}, {gathered.bytes}, gathered.buffer);
  return absl::OkStatus();
}

}  // namespace muster
