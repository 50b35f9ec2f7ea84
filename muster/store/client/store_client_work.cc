#include "muster/store/client/store_client_work.h"

#include <utility>

#include "muster/base/status_macros.h"
#include "muster/store/client/store_call.h"

namespace muster {

void StoreClient::Work::Share(StoreClient& client, std::shared_ptr<WorkTally> tally) {
  client.push_.work = std::move(tally);
  const bool joined = client.servers_[0].joined.ps_incarnation != 0;
  if (joined) client.push_.work->Joined(client.MakeStamp(0, 0));
}

absl::Status StoreClient::Work::Join(StoreClient& client) {
  if (client.push_.work == nullptr) return absl::OkStatus();
  client.push_.work->Joined(client.MakeStamp(0, 0));
  return GiveUp(client);
}

absl::Status StoreClient::Work::Settle(StoreClient& client, bool pushed) {
  if (client.push_.work == nullptr) return absl::OkStatus();
  if (pushed) {
    client.push_.work->Counted();
    return absl::OkStatus();
  }
  client.push_.work->Dropped();
  return GiveUp(client);
}

absl::Status StoreClient::Work::GiveUp(StoreClient& client) {
  const GiveUpWorkRequest message{.stamp = client.MakeStamp(0, 0), .tickets = client.push_.work->Abandoned()};
  if (message.tickets.empty()) return absl::OkStatus();
  StoreCall call{.ps = 0, .method = StoreMethod::kGiveUpWork, .control = Encode(message)};
  RETURN_IF_ERROR(client.ExchangeOne(call, client.options_.patience));
  client.push_.work->Told(message.tickets.size());
  return absl::OkStatus();
}

}  // namespace muster
