#include "muster/store/store_client_direct.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/store/gradient_policy.h"
#include "muster/store/store_call.h"

namespace muster {
namespace {

// A ps that has just come back may be gone again.
constexpr absl::Duration kVisitAgainAfter = absl::Milliseconds(100);
// A hold ends without a message.
constexpr absl::Duration kLookAtHoldAfter = absl::Milliseconds(1);

}  // namespace

absl::Status StoreClient::Direct::VisitOne(StoreClient& client, int ps) {
  StoreCall open{
      .ps = ps, .method = StoreMethod::kOpenDirect, .control = Encode(OpenDirectRequest{client.MakeStamp(ps, 0)})};
  RETURN_IF_ERROR(client.ExchangeOne(open, client.options_.patience));
  OpenDirectReply reply;
  RETURN_IF_ERROR(client.Annotate(ps, Decode(open.answer->control, reply)));
  auto guest = ArenaGuest::Visit(reply.socket, reply.ticket);
  RETURN_IF_ERROR(client.Annotate(ps, guest.status()));
  StoreCall enter{.ps = ps,
                  .method = StoreMethod::kEnterDirect,
                  .control = Encode(EnterDirectRequest{client.MakeStamp(ps, 0), reply.ticket})};
  RETURN_IF_ERROR(client.ExchangeOne(enter, client.options_.patience));
  ArenaGuest* const before = client.direct_ != nullptr ? &client.direct_->apply_.guest(ps) : nullptr;
  const auto num_clients = static_cast<int>(reply.clients);
  RETURN_IF_ERROR(client.Annotate(ps, (*guest)->Attach(before, num_clients, client.options_.probe)));
  const Server& server = client.servers_[ps];
  apply_.Add(*std::move(guest), static_cast<int>(server.joined.client), server.slices);
  return absl::OkStatus();
}

absl::Status StoreClient::Direct::Try(StoreClient& client) {
  auto direct = std::make_unique<Direct>();
  for (int ps = 0; ps < client.num_ps(); ++ps) RETURN_IF_ERROR(direct->VisitOne(client, ps));
  client.direct_ = std::move(direct);
  return absl::OkStatus();
}

absl::Status StoreClient::Direct::Open(StoreClient& client) {
  const StoreClientOptions& options = client.options_;
  const ModelBinding& binding = client.binding_;
  const bool by_ps = binding.clock_limit > 0 || binding.exchanges;
  if (options.apply == ApplyChoice::kServer || (by_ps && options.apply == ApplyChoice::kAuto)) return absl::OkStatus();
  const bool again = client.direct_ != nullptr;
  const absl::Time give_up = client.loop_.Now() + options.patience;
  absl::Status opened = Try(client);
  // Who was on this host a moment ago still is, once it is back.
  while (again && absl::IsUnavailable(opened) && client.loop_.Now() < give_up && !options.stop_requested()) {
    client.loop_.RunUntil(options.stop_requested, client.loop_.Now() + kVisitAgainAfter);
    opened = Try(client);
  }
  if (opened.ok() && !again)
    LogInfo(options.task, " applies its updates itself, in the memory of ", client.num_ps(), " ps");
  if (opened.ok() || absl::IsAborted(opened) || absl::IsCancelled(opened) || again) return opened;
  if (options.apply == ApplyChoice::kDirect)
    return absl::FailedPreconditionError(absl::StrCat("direct apply is asked for, but can't be had: ", opened.message(),
                                                      "; accepted then: server, auto"));
  LogInfo("the ps apply the updates of ", options.task, ": ", opened.message());
  return absl::OkStatus();
}

InPlaceMemory StoreClient::Direct::InPlace(const StoreClient& client, size_t variable) {
  if (client.direct_ == nullptr) return {};
  // Where nobody else writes, in place and a copy are the same; so they are where nothing is written without this
  // worker's gradient.
  const bool alone = client.direct_->apply_.guest(0).arena().layout().num_clients() == 1;
  const GateSpec& gate = client.binding_.gate;
  const bool in_step = gate.kind == GateKind::kSynchronous && gate.replicas_to_aggregate >= gate.total_replicas;
  if (client.options_.apply != ApplyChoice::kDirect && !alone && !in_step) return {};
  return client.direct_->apply_.InPlace(variable);
}

void StoreClient::Direct::Close(StoreClient& client) {
  if (client.direct_ == nullptr) return;
  client.direct_->apply_.TakeValuesAlong();
  client.direct_.reset();
}

absl::Status StoreClient::Direct::BeginUpdate(StoreClient& client, uint64_t sequence) {
  client.direct_->apply_.Begin(sequence);
  const auto may_go_on = [&] { return client.direct_->apply_.MayApply(sequence) || client.direct_->apply_.ended(); };
  while (!client.loop_.RunUntil(may_go_on, client.loop_.Now() + kLookAtHoldAfter)) {
    if (client.direct_->apply_.hosts_alive()) continue;
    RETURN_IF_ERROR(Open(client));
    client.direct_->apply_.Begin(sequence);
  }
  return client.direct_->apply_.ended() ? absl::CancelledError("training has ended") : absl::OkStatus();
}

absl::StatusOr<StorePushResult> StoreClient::Direct::PushPull(StoreClient& client,
                                                              absl::FunctionRef<ByteSpan(size_t)> gradient,
                                                              const StorePushOptions& options) {
  if (client.direct_->apply_.ended() && options.minibatches > 0) return absl::CancelledError("training has ended");
  if (options.compensation > 0)
    return absl::InvalidArgumentError("delay compensation is the ps's: it takes updates applied by the server");
  // Only its ps knows whether what this process has mapped is still what counts.
  if (!client.direct_->apply_.hosts_alive()) RETURN_IF_ERROR(Open(client));
  if (options.local_step.has_value()) return Contribute(client, gradient, options);
  // Before the values: who has read some of the next round's is late, and knows it.
  const uint64_t round = client.direct_->apply_.round();
  const std::vector<double> scales = ClipScales(client.binding_, gradient);
  const uint64_t sequence = ++client.sequence_;
  if (options.minibatches > 0) RETURN_IF_ERROR(BeginUpdate(client, sequence));
  ASSIGN_OR_RETURN(
      const StorePushResult result,
      client.direct_->apply_.PushPull(client.binding_, gradient, options,
                                      {.sequence = sequence, .generation = client.generation_, .scales = &scales}));
  client.global_step_ = result.global_step;
  client.round_ = round;
  if (client.chief_epoch() != 0 && client.direct_->apply_.load_requested())
    RETURN_IF_ERROR(client.ReadGlobalStep().status());
  return result;
}

}  // namespace muster
