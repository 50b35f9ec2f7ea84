#include "muster/store/client/work_reports.h"

#include <utility>

#include "muster/base/status_macros.h"

namespace muster {

void WorkReports::Share(std::shared_ptr<WorkTally> tally) {
  tally_ = std::move(tally);
  const bool joined = ps_calls_.joined(0).ps_incarnation != 0;
  if (joined) tally_->Joined(ps_calls_.MakeStamp(0, 0));
}

absl::Status WorkReports::Joined() {
  if (tally_ == nullptr) return absl::OkStatus();
  tally_->Joined(ps_calls_.MakeStamp(0, 0));
  return GiveUp();
}

absl::Status WorkReports::Settle(bool pushed) {
  if (tally_ == nullptr) return absl::OkStatus();
  if (pushed) {
    tally_->Counted();
    return absl::OkStatus();
  }
  tally_->Dropped();
  return GiveUp();
}

absl::Status WorkReports::GiveUp() {
  const GiveUpWorkRequest message{.stamp = ps_calls_.MakeStamp(0, 0), .tickets = tally_->Abandoned()};
  if (message.tickets.empty()) return absl::OkStatus();
  StoreCall call{.ps = 0, .method = StoreMethod::kGiveUpWork, .control = Encode(message)};
  RETURN_IF_ERROR(ps_calls_.ExchangeOne(call, ps_calls_.options().patience));
  tally_->Told(message.tickets.size());
  return absl::OkStatus();
}

}  // namespace muster
