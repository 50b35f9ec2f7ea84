// What is asked of the queues, and of the work queue of ps 0. The rest of the ps is in store_service.cc.
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/store/service/store_service.h"

namespace muster {

absl::Status StoreService::On(const OpenQueueRequest& message, IncomingCall& call) {
  RETURN_IF_ERROR(NeedTraining());
  queues_.Open(call.connection, message, std::move(call.responder));
  return absl::OkStatus();
}

absl::Status StoreService::On(const QueueRequest& message, IncomingCall& call) {
  RETURN_IF_ERROR(NeedTraining());
  queues_.Handle(call.method, call.connection, message, call.bulk, std::move(call.responder));
  return absl::OkStatus();
}

absl::Status StoreService::NeedLead() const {
  if (options_.lead) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(options_.task, " does not lead: ask ps:0"));
}

absl::Status StoreService::On(const TakeWorkRequest& message, IncomingCall& call) {
  RETURN_IF_ERROR(NeedLead());
  RETURN_IF_ERROR(NeedTraining());
  RETURN_IF_ERROR(clients_.Hear(message.stamp, call.connection, loop_.Now()));
  ASSIGN_OR_RETURN(const TakeWorkReply reply, work_.Take(message, arena_.get(), loop_.Now()));
  call.responder.Send(Encode(reply));
  return absl::OkStatus();
}

absl::Status StoreService::On(const GiveUpWorkRequest& message, IncomingCall& call) {
  RETURN_IF_ERROR(NeedLead());
  RETURN_IF_ERROR(clients_.Hear(message.stamp, call.connection, loop_.Now()));
  // Without a model nobody has anything.
  if (arena_) work_.GiveUp(message, *arena_);
  call.responder.Send({});
  return absl::OkStatus();
}

}  // namespace muster
