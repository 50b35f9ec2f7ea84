// Look-ups and updates of single rows: who may ask, and when. The rest of the ps is in store_service.cc.
#include <algorithm>

#include "absl/status/status.h"
#include "muster/base/status_macros.h"
#include "muster/store/arena/shared_memory_order.h"
#include "muster/store/service/answer_memory.h"
#include "muster/store/service/store_service.h"

namespace muster {

absl::Status StoreService::CheckRows(const IncomingRequest& request, const RowsRequest& message, size_t bulk_bytes) {
  const auto method = static_cast<StoreMethod>(request.method);
  if (method == StoreMethod::kPushRows) RETURN_IF_ERROR(NeedTraining());
  RETURN_IF_ERROR(NeedModel());
  RETURN_IF_ERROR(clients_.Hear(message.stamp, request.connection, loop_.Now()));
  RETURN_IF_ERROR(CheckRowsRequest(arena_->model(), method, message, bulk_bytes));
  return CheckGeneration(message.generation);
}

void StoreService::OnRows(const IncomingRequest& request, const RowsRequest& message, ByteSpan bulk,
                          Responder responder) {
  // Looked at again although PrepareBulk did: see OnPushPull.
  absl::Status status = CheckRows(request, message, bulk.size());
  if (!status.ok()) return responder.Fail(std::move(status));
  if (static_cast<StoreMethod>(request.method) == StoreMethod::kPushRows) {
    if (!options_.lead) known_step_ = std::max(known_step_, message.global_step);
    const RuleSpec& rule = arena_->model().rule(arena_->model().slices[message.slice]);
    const int64_t global_step = options_.lead ? Observe(arena_->header().counters.global_step) : known_step_;
    status = PushRows(*arena_, message, LearningRateAt(rule.schedule, rule.learning_rate, global_step), bulk);
    if (!status.ok()) return responder.Fail(std::move(status));
    rows_.pushed += message.rows;
    return responder.Send({});
  }
  const size_t bytes = GatheredBytes(arena_->model(), message);
  const AnswerMemory gathered(responder, buffers_, bytes);
  status = GatherRows(*arena_, message, bulk, gathered.bytes);
  if (!status.ok()) return responder.Fail(std::move(status));
  rows_.gathered += message.rows;
  if (bytes == 0) return responder.Send({});
  responder.Send({}, {gathered.bytes}, gathered.buffer);
}

}  // namespace muster
