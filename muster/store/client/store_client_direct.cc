#include "muster/store/client/store_client_direct.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/store/client/store_call.h"

namespace muster {
namespace {

// A ps may be gone when it is visited, though it has just answered. One that answers every time and is never found on
// this host is on another.
constexpr absl::Duration kRetryAfter = absl::Milliseconds(100);
constexpr int kAttempts = 20;
// A hold ends without a message.
constexpr absl::Duration kLookAtHoldAfter = absl::Milliseconds(1);

// What of a worker's own updates can be done where all updates come by only; null: nothing.
const char* PsBusiness(const ModelBinding& binding) {
  if (binding.compensation > 0) return "delay compensation";
  if (binding.adaptive > 0) return "ADAG's scale per weight";
  if (binding.staleness_scale != StalenessScale::kNone) return "a scale by staleness";
  return nullptr;
}

const char* WhyThePsAlone(const StoreModel& model) {
  if (model.exchanges) return "elastic exchanges are their business alone";
  if (model.ordered) return "they take them in the workers' order";
  return "by a bound of staleness they make workers wait";
}

}  // namespace

absl::Status StoreClient::Direct::AttachTo(StoreClient& client, int ps, bool& elsewhere) {
  StoreCall open{
      .ps = ps, .method = StoreMethod::kOpenDirect, .control = Encode(OpenDirectRequest{client.MakeStamp(ps, 0)})};
  RETURN_IF_ERROR(client.ExchangeOne(open, client.options_.patience));
  OpenDirectReply reply;
  RETURN_IF_ERROR(client.Annotate(ps, Decode(open.answer->control, reply)));
  auto attachment = ArenaAttachment::Connect(reply.socket, reply.ticket);
  elsewhere = absl::IsUnavailable(attachment.status());
  RETURN_IF_ERROR(client.Annotate(ps, attachment.status()));
  StoreCall enter{.ps = ps,
                  .method = StoreMethod::kEnterDirect,
                  .control = Encode(EnterDirectRequest{client.MakeStamp(ps, 0), reply.ticket})};
  RETURN_IF_ERROR(client.ExchangeOne(enter, client.options_.patience));
  ArenaAttachment* const before = client.direct_ != nullptr ? &client.direct_->apply_.attachment(ps) : nullptr;
  const auto num_clients = static_cast<int>(reply.clients);
  RETURN_IF_ERROR(client.Annotate(ps, (*attachment)->Attach(before, num_clients, client.options_.probe)));
  const Server& server = client.servers_[ps];
  apply_.Add(*std::move(attachment), static_cast<int>(server.joined.client), server.slices);
  return absl::OkStatus();
}

absl::Status StoreClient::Direct::Try(StoreClient& client, bool& elsewhere) {
  if (const char* what = PsBusiness(client.binding_))
    return absl::NotFoundError(absl::StrCat(what, " needs updates that a ps applies"));
  if (client.binding_.through_ps)
    return absl::NotFoundError("pipelined training hides the time to send to the ps, and direct apply sends nothing");
  auto direct = std::make_unique<Direct>();
  elsewhere = false;
  for (int ps = 0; ps < client.num_ps(); ++ps) RETURN_IF_ERROR(direct->AttachTo(client, ps, elsewhere));
  client.direct_ = std::move(direct);
  return absl::OkStatus();
}

absl::Status StoreClient::Direct::Open(StoreClient& client) {
  const StoreClientOptions& options = client.options_;
  if (options.apply == ApplyChoice::kServer) return absl::OkStatus();
  // Under kDirect the ps says no, and why.
  if (options.apply == ApplyChoice::kAuto && client.ModelOf(0).applied_by_ps_alone()) {
    LogInfo("the ps apply the updates of ", options.task, ": ", WhyThePsAlone(client.ModelOf(0)));
    return absl::OkStatus();
  }
  const bool again = client.direct_ != nullptr;
  bool elsewhere = false;
  absl::Status opened = Try(client, elsewhere);
  // Only a client that can't do without direct apply waits for it.
  const bool insists = again || options.apply == ApplyChoice::kDirect;
  int attempts = 1;
  for (; insists && elsewhere && attempts < kAttempts && !options.stop_requested(); ++attempts) {
    client.loop_.RunUntil(options.stop_requested, client.loop_.Now() + kRetryAfter);
    opened = Try(client, elsewhere);
  }
  if (opened.ok() && !again) {
    // A store in the client's own process is no ps, and there was nothing to choose.
    const bool own = client.direct_->apply_.attachment(0).arena().header().one_process != 0;
    if (!own)
      LogInfo(options.task, " applies its updates itself, in the memory of ", client.num_ps(), " ps",
              options.tcp_asked_for ? ": nothing is sent, over TCP or otherwise" : "");
    if (options.wire.narrow()) LogInfo("nothing is sent to a ps, in whatever precision was asked for: all is fp32");
  }
  // A ps that is out of reach, or has lost the model, would do nothing for the client either.
  const bool out_of_reach = absl::IsUnavailable(opened) && !elsewhere;
  if (opened.ok() || absl::IsAborted(opened) || absl::IsCancelled(opened) || out_of_reach) return opened;
  if (options.apply == ApplyChoice::kDirect) {
    const std::string why = absl::StrCat("direct apply was asked for, but isn't possible: ", opened.message(),
                                         "; accepted then: server, auto");
    // What the model forbids, or a living ps: it never will be had. Anything else may be had another time.
    const bool never = absl::IsNotFound(opened) || (elsewhere && attempts == kAttempts);
    return never && !again ? WrongConfigurationError(why) : absl::FailedPreconditionError(why);
  }
  LogInfo("the ps apply the updates of ", options.task, ": ", opened.message());
  if (again) FallBack(client);
  return absl::OkStatus();
}

// Nothing is under way under a number that has been announced; and the ps have to know how old the values are.
void StoreClient::Direct::FallBack(StoreClient& client) {
  DirectApply& apply = client.direct_->apply_;
  apply.Begin(0);
  for (int ps = 0; ps < client.num_ps(); ++ps) client.servers_[ps].pulled_version = apply.pulled_version(ps);
  Close(client);
}

absl::StatusOr<DirectApply*> StoreClient::Direct::Use(StoreClient& client, bool changes) {
  if (client.direct_ == nullptr) return nullptr;
  if (changes && client.direct_->apply_.ended()) return absl::CancelledError("training has ended");
  // Only its ps knows whether what this process has mapped is still what counts.
  if (!client.direct_->apply_.hosts_alive()) RETURN_IF_ERROR(Open(client));
  return client.direct_ == nullptr ? nullptr : &client.direct_->apply_;
}

InPlaceMemory StoreClient::Direct::InPlace(const StoreClient& client, size_t variable) {
  if (client.direct_ == nullptr) return {};
  // Where nobody else writes, in place and a copy are the same; so they are where nothing is written without this
  // worker's gradient. (An elastic gate may fire without a worker whose lease ran out while it was stopped: that one's
  // gradient may have seen values change under it, and is dropped as late.)
  const bool alone = client.direct_->apply_.attachment(0).arena().layout().num_clients() == 1;
  const GateSpec& gate = client.binding_.gate;
  const bool in_step = gate.kind == GateKind::kSynchronous && gate.replicas_to_aggregate >= gate.total_replicas;
  if (client.options_.apply != ApplyChoice::kDirect && !alone && !in_step) return {};
  return client.direct_->apply_.InPlace(variable);
}

void StoreClient::Direct::Close(StoreClient& client) {
  if (client.direct_ == nullptr) return;
  client.direct_->apply_.TakeAlong();
  client.direct_.reset();
}

absl::Status StoreClient::Direct::BeginUpdate(StoreClient& client, uint64_t sequence) {
  client.direct_->apply_.Begin(sequence);
  const absl::Status begun = AwaitCut(client, sequence);
  if (!begun.ok() && client.direct_ != nullptr) client.direct_->apply_.Begin(0);  // nothing is under way
  return begun;
}

absl::Status StoreClient::Direct::AwaitCut(StoreClient& client, uint64_t sequence) {
  const StoreClientOptions& options = client.options_;
  const Track::Span wait(options.track, Activity::kWait);
  const absl::Time began = client.loop_.Now();
  bool said = false;
  for (;;) {
    std::optional<int> holder;
    const auto settled = [&] {
      holder = client.direct_->apply_.HeldBackBy(sequence);
      return !holder || client.direct_->apply_.ended() || options.stop_requested();
    };
    if (client.loop_.RunUntil(settled, client.loop_.Now() + kLookAtHoldAfter)) {
      if (client.direct_->apply_.ended()) return absl::CancelledError("training has ended");
      return holder ? absl::CancelledError("a stop was requested") : absl::OkStatus();
    }
    if (!client.direct_->apply_.hosts_alive()) {
      RETURN_IF_ERROR(Open(client));
      if (client.direct_ == nullptr) return absl::OkStatus();
      client.direct_->apply_.Begin(sequence);
    }
    // The ps ends a hold by its own clock: one that doesn't is stopped, or worse.
    const absl::Duration held = client.loop_.Now() - began;
    if (held >= options.patience)
      return client.Annotate(*holder, absl::UnavailableError(absl::StrCat(
                                          "it has held updates back for ", absl::FormatDuration(held),
                                          ", for the cut of a checkpoint, and does nothing else; is it stopped?")));
    if (held >= kSilenceBeforeNotice && !std::exchange(said, true))
      LogInfo("waiting for ", client.Name(*holder),
              ", which holds updates back for the cut of a checkpoint; giving up in ",
              absl::FormatDuration(absl::Ceil(options.patience - held, absl::Seconds(1))));
  }
}

absl::StatusOr<StorePushResult> StoreClient::Direct::PushPull(StoreClient& client,
                                                              absl::FunctionRef<ByteSpan(size_t)> gradient,
                                                              const std::vector<double>& scales,
                                                              const StorePushOptions& options) {
  if (client.direct_->apply_.ended() && options.minibatches > 0) return absl::CancelledError("training has ended");
  if (options.exchange > 0)
    return absl::InvalidArgumentError("the push is an elastic exchange, but the model has none");
  ASSIGN_OR_RETURN(DirectApply * apply, Use(client, /*changes=*/false));
  if (apply == nullptr) return client.PushPullAll(gradient, scales, options);
  if (options.local_step.has_value()) return Contribute(client, gradient, scales, options);
  // Before the values: who has read some of the next round's is late, and knows it.
  const uint64_t round = apply->round();
  const uint64_t sequence = ++client.sequence_;
  if (options.minibatches > 0) RETURN_IF_ERROR(BeginUpdate(client, sequence));
  if (client.direct_ == nullptr) {
    // Under the number that was announced: a ps that is held for a cut lets no newer one in.
    --client.sequence_;
    return client.PushPullAll(gradient, scales, options);
  }
  const Track::Span applying(client.options_.track, options.minibatches > 0 ? Activity::kApply : Activity::kPull);
  ASSIGN_OR_RETURN(
      const StorePushResult result,
      client.direct_->apply_.PushPull(client.binding_, gradient, options,
                                      {.sequence = sequence,
                                       .generation = client.generation_,
                                       .scales = &scales,
                                       .work = options.minibatches > 0 ? client.push_.Work() : WorkRange()}));
  client.global_step_ = result.global_step;
  client.round_ = round;
  if (client.chief_epoch() != 0 && client.direct_->apply_.load_requested())
    RETURN_IF_ERROR(client.ReadGlobalStep().status());
  return result;
}

}  // namespace muster
