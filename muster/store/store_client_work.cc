// What a client's pushes say of the work queue, and what it tells ps 0 beside them. The rest is in store_client.cc.
#include <utility>

#include "muster/base/status_macros.h"
#include "muster/store/store_client.h"

namespace muster {

void StoreClient::ShareWork(std::shared_ptr<WorkTally> work) {
  work_ = std::move(work);
  const bool joined = servers_[0].joined.ps_incarnation != 0;
  if (joined) work_->Joined(MakeStamp(0, 0));
}

absl::Status StoreClient::SettleWork(bool pushed) {
  if (work_ == nullptr) return absl::OkStatus();
  if (pushed) {
    work_->Counted();
    return absl::OkStatus();
  }
  work_->Dropped();
  return GiveUpWork();
}

absl::Status StoreClient::GiveUpWork() {
  GiveUpWorkRequest message{.stamp = MakeStamp(0, 0), .tickets = work_->Abandoned()};
  if (message.tickets.empty()) return absl::OkStatus();
  StoreCall call{.ps = 0, .method = StoreMethod::kGiveUpWork, .control = Encode(message)};
  RETURN_IF_ERROR(ExchangeOne(call, options_.patience));
  work_->Told(message.tickets.size());
  return absl::OkStatus();
}

}  // namespace muster
