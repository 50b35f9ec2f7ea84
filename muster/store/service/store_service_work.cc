// What is asked of the queues, and of the work queue of ps 0. The rest of the ps is in store_service.cc.
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/store/service/store_service.h"

namespace muster {

void StoreService::OnQueue(const IncomingRequest& request, const DecodedRequest& decoded, Responder responder) {
  if (absl::Status status = NeedTraining(); !status.ok()) return responder.Fail(std::move(status));
  queues_.Handle(request, decoded.queue, decoded.bytes(), std::move(responder));
}

absl::Status StoreService::NeedLead() const {
  if (options_.lead) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(options_.task, " does not lead: ask ps:0"));
}

void StoreService::OnTakeWork(const IncomingRequest& request, Responder responder) {
  TakeWorkRequest message;
  absl::Status status = Decode(request.control, message);
  if (status.ok()) status = NeedLead();
  if (status.ok()) status = NeedTraining();
  if (status.ok()) status = clients_.Hear(message.stamp, request.connection, loop_.Now());
  if (!status.ok()) return responder.Fail(std::move(status));
  const auto reply = work_.Take(message, arena_.get(), loop_.Now());
  reply.ok() ? responder.Send(Encode(*reply)) : responder.Fail(reply.status());
}

void StoreService::OnGiveUpWork(const IncomingRequest& request, Responder responder) {
  GiveUpWorkRequest message;
  absl::Status status = Decode(request.control, message);
  if (status.ok()) status = NeedLead();
  if (status.ok()) status = clients_.Hear(message.stamp, request.connection, loop_.Now());
  if (!status.ok()) return responder.Fail(std::move(status));
  // Without a model nobody has anything.
  if (arena_) work_.GiveUp(message, *arena_);
  responder.Send({});
}

}  // namespace muster
