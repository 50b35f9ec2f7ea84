#include "muster/store/client/direct_updates.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/store/client/store_client.h"

namespace muster {
namespace {

// A ps may be gone when this client attaches, though it has just answered. One that answers every time and is never
// found on this host is on another.
constexpr absl::Duration kRetryAfter = absl::Milliseconds(100);
constexpr int kAttempts = 20;
// A hold ends without a message.
constexpr absl::Duration kCheckHoldAfter = absl::Milliseconds(1);
// After so long a wait in a synchronous round the client is behind a slow worker and looks less often: the bell wakes
// it anyway, and it only looks for what doesn't ring: a death, the end. Looking every 5 ms took 2 % of a core
// (`./dev bench ps`).
constexpr absl::Duration kLong = absl::Milliseconds(100);
constexpr int kLongerSleep = 10;

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

absl::Status DirectUpdates::AttachTo(DirectApply& apply, int ps, bool& elsewhere) {
  StoreCall open{
      .ps = ps, .method = StoreMethod::kOpenDirect, .control = Encode(OpenDirectRequest{client_.MakeStamp(ps, 0)})};
  RETURN_IF_ERROR(client_.ps_calls_.ExchangeOne(open, client_.options_.patience));
  OpenDirectReply reply;
  RETURN_IF_ERROR(client_.ps_calls_.Annotate(ps, Decode(open.answer->control, reply)));
  auto attachment = ArenaAttachment::Connect(reply.socket, reply.ticket);
  elsewhere = absl::IsUnavailable(attachment.status());
  RETURN_IF_ERROR(client_.ps_calls_.Annotate(ps, attachment.status()));
  StoreCall enter{.ps = ps,
                  .method = StoreMethod::kEnterDirect,
                  .control = Encode(EnterDirectRequest{client_.MakeStamp(ps, 0), reply.ticket})};
  RETURN_IF_ERROR(client_.ps_calls_.ExchangeOne(enter, client_.options_.patience));
  ArenaAttachment* const before = apply_ != nullptr ? &apply_->attachment(ps) : nullptr;
  const auto num_clients = static_cast<int>(reply.clients);
  RETURN_IF_ERROR(client_.ps_calls_.Annotate(ps, (*attachment)->Attach(before, num_clients, client_.options_.probe)));
  apply.Add(*std::move(attachment), static_cast<int>(client_.ps_calls_.joined(ps).client), client_.bound_[ps].slices);
  return absl::OkStatus();
}

absl::Status DirectUpdates::Try(bool& elsewhere) {
  if (const char* what = PsBusiness(client_.binding_))
    return absl::NotFoundError(absl::StrCat(what, " needs updates that a ps applies"));
  if (client_.binding_.through_ps)
    return absl::NotFoundError("pipelined training hides the time to send to the ps, and direct apply sends nothing");
  auto apply = std::make_unique<DirectApply>();
  elsewhere = false;
  for (int ps = 0; ps < client_.num_ps(); ++ps) RETURN_IF_ERROR(AttachTo(*apply, ps, elsewhere));
  apply_ = std::move(apply);
  return absl::OkStatus();
}

absl::Status DirectUpdates::Open() {
  const StoreClientOptions& options = client_.options_;
  if (options.apply == ApplyChoice::kServer) return absl::OkStatus();
  // Under kDirect the ps says no, and why.
  if (options.apply == ApplyChoice::kAuto && client_.ModelOf(0).applied_by_ps_alone()) {
    LogInfo("the ps apply the updates of ", options.task, ": ", WhyThePsAlone(client_.ModelOf(0)));
    return absl::OkStatus();
  }
  const bool again = apply_ != nullptr;
  bool elsewhere = false;
  absl::Status opened = Try(elsewhere);
  // Only a client that can't do without direct apply waits for it.
  const bool insists = again || options.apply == ApplyChoice::kDirect;
  int attempts = 1;
  for (; insists && elsewhere && attempts < kAttempts && !options.stop_requested(); ++attempts) {
    client_.ps_calls_.loop().RunUntil(options.stop_requested, client_.ps_calls_.loop().Now() + kRetryAfter);
    opened = Try(elsewhere);
  }
  if (opened.ok() && !again) {
    // A store in the client's own process is no ps, and there was nothing to choose.
    const bool own = apply_->attachment(0).arena().header().one_process != 0;
    if (!own)
      LogInfo(options.task, " applies its updates itself, in the memory of ", client_.num_ps(), " ps",
              options.tcp_asked_for ? ": nothing is sent, over TCP or otherwise" : "");
    if (options.wire.narrow()) LogInfo("nothing is sent to a ps, in whatever precision was asked for: all is fp32");
  }
  // A ps that is out of reach, or has lost the model, would do nothing for the client either.
  const bool out_of_reach = absl::IsUnavailable(opened) && !elsewhere;
  if (opened.ok() || absl::IsAborted(opened) || absl::IsCancelled(opened) || out_of_reach) return opened;
  if (options.apply == ApplyChoice::kDirect) {
    const std::string why = absl::StrCat("direct apply was asked for, but isn't possible: ", opened.message(),
                                         "; accepted then: server, auto");
    // What the model or a living ps forbids is never available. Anything else may be at another time.
    const bool never = absl::IsNotFound(opened) || (elsewhere && attempts == kAttempts);
    return never && !again ? WrongConfigurationError(why) : absl::FailedPreconditionError(why);
  }
  LogInfo("the ps apply the updates of ", options.task, ": ", opened.message());
  if (again) FallBack();
  return absl::OkStatus();
}

// Nothing is under way under a number that has been announced; and the ps have to know how old the values are.
void DirectUpdates::FallBack() {
  apply_->Begin(0);
  for (int ps = 0; ps < client_.num_ps(); ++ps) client_.bound_[ps].pulled_version = apply_->pulled_version(ps);
  Close();
}

absl::StatusOr<DirectApply*> DirectUpdates::Use(bool changes) {
  if (apply_ == nullptr) return nullptr;
  if (changes && apply_->ended()) return absl::CancelledError("training has ended");
  // Only its ps knows whether what this process has mapped is still what counts.
  if (!apply_->hosts_alive()) RETURN_IF_ERROR(Open());
  if (changes && apply_ != nullptr && apply_->CutOffPs()) RETURN_IF_ERROR(AwaitRelease(std::nullopt));
  return apply_.get();
}

InPlaceMemory DirectUpdates::InPlace(size_t variable) const {
  if (apply_ == nullptr) return {};
  // Where nobody else writes, in place and a copy are the same; so they are where nothing is written without this
  // worker's gradient. (An elastic gate may fire without a worker whose lease ran out while it was stopped: its
  // gradient may have seen values change under it, and is dropped as late.)
  const bool alone = apply_->attachment(0).arena().layout().num_clients() == 1;
  const GateSpec& gate = client_.binding_.gate;
  const bool in_step = gate.kind == GateKind::kSynchronous && gate.replicas_to_aggregate >= gate.total_replicas;
  if (client_.options_.apply != ApplyChoice::kDirect && !alone && !in_step) return {};
  return apply_->InPlace(variable);
}

void DirectUpdates::Close() {
  if (apply_ == nullptr) return;
  apply_->TakeAlong();
  apply_.reset();
}

absl::Status DirectUpdates::BeginUpdate(uint64_t sequence) {
  apply_->Begin(sequence);
  const absl::Status begun = AwaitRelease(sequence);
  if (!begun.ok() && apply_ != nullptr) apply_->Begin(0);  // nothing is under way
  return begun;
}

absl::Status DirectUpdates::AwaitRelease(std::optional<uint64_t> sequence) {
  const StoreClientOptions& options = client_.options_;
  const Track::Span wait(options.track, Activity::kWait);
  const absl::Time began = client_.ps_calls_.loop().Now();
  bool said = false;
  for (;;) {
    std::optional<int> holder;
    const auto settled = [&] {
      holder = sequence ? apply_->HeldBackBy(*sequence) : apply_->CutOffPs();
      return !holder || apply_->ended() || options.stop_requested();
    };
    if (client_.ps_calls_.loop().RunUntil(settled, client_.ps_calls_.loop().Now() + kCheckHoldAfter)) {
      if (apply_->ended()) return absl::CancelledError("training has ended");
      return holder ? absl::CancelledError("a stop was requested") : absl::OkStatus();
    }
    if (!apply_->hosts_alive()) {
      RETURN_IF_ERROR(Open());
      if (apply_ == nullptr) return absl::OkStatus();
      if (sequence) apply_->Begin(*sequence);
    }
    // The ps ends a hold by its own clock: one that doesn't is stopped, or worse.
    const absl::Duration held = client_.ps_calls_.loop().Now() - began;
    if (held >= options.patience)
      return client_.ps_calls_.Annotate(
          *holder,
          absl::UnavailableError(absl::StrCat("it has held updates back for ", absl::FormatDuration(held),
                                              ", for the cut of a checkpoint or because it hears no other host; is it "
                                              "stopped, or cut off?")));
    if (held >= kSilenceBeforeNotice && !std::exchange(said, true))
      LogInfo("waiting for ", client_.ps_calls_.Name(*holder),
              ", which holds updates back for the cut of a checkpoint, or hears no other host; giving up in ",
              absl::FormatDuration(absl::Ceil(options.patience - held, absl::Seconds(1))));
  }
}

absl::StatusOr<StorePushResult> DirectUpdates::PushPull(absl::FunctionRef<ByteSpan(size_t)> gradient,
                                                        const std::vector<double>& scales,
                                                        const StorePushOptions& options) {
  if (apply_->ended() && options.minibatches > 0) return absl::CancelledError("training has ended");
  if (options.exchange > 0)
    return absl::InvalidArgumentError("the push is an elastic exchange, but the model has none");
  ASSIGN_OR_RETURN(DirectApply * apply, Use(/*changes=*/false));
  if (apply == nullptr) return client_.PushPullAll(gradient, scales, options);
  if (options.local_step.has_value()) return Contribute(gradient, scales, options);
  // Before the values: a client that has read some of the next round's is late, and knows it.
  const uint64_t round = apply->round();
  const uint64_t sequence = ++client_.sequence_;
  if (options.minibatches > 0) RETURN_IF_ERROR(BeginUpdate(sequence));
  if (apply_ == nullptr) {
    // Under the number that was announced: a ps that is held for a cut lets no newer one in.
    --client_.sequence_;
    return client_.PushPullAll(gradient, scales, options);
  }
  const Track::Span applying(client_.options_.track, options.minibatches > 0 ? Activity::kApply : Activity::kPull);
  ASSIGN_OR_RETURN(const StorePushResult result,
                   apply_->PushPull(client_.binding_, gradient, options,
                                    {.sequence = sequence,
                                     .generation = client_.generation_,
                                     .scales = &scales,
                                     .work = options.minibatches > 0 ? client_.work_.Seal() : WorkRange()}));
  client_.global_step_ = result.global_step;
  client_.round_ = round;
  if (client_.chief_epoch() != 0 && apply_->load_requested()) RETURN_IF_ERROR(client_.ReadGlobalStep().status());
  return result;
}

absl::Status DirectUpdates::CheckPatience(absl::Time give_up, GateWaitNotice& notice) {
  notice.Check(client_.ps_calls_.loop().Now());
  if (client_.options_.stop_requested()) return absl::CancelledError("a stop was requested");
  if (client_.ps_calls_.loop().Now() >= give_up)
    return absl::UnavailableError(absl::StrCat("round ", apply_->round(), " has not had its contributors within ",
                                               absl::FormatDuration(client_.options_.gate_patience)));
  return apply_->hosts_alive() ? absl::OkStatus() : Open();
}

absl::StatusOr<StorePushResult> DirectUpdates::Contribute(absl::FunctionRef<ByteSpan(size_t)> gradient,
                                                          const std::vector<double>& scales,
                                                          const StorePushOptions& options) {
  const auto piece = [&](int ps, int slice) -> const SlicePiece& { return apply_->piece(ps, slice); };
  const auto bytes = [&](int ps, int slice) {
    const SlicePiece& at = piece(ps, slice);
    ByteSpan whole;
    if (at.kind == VariableKind::kTrainable) whole = gradient(at.variable);
    if (at.kind == VariableKind::kBuffer && options.publish_buffers) whole = client_.binding_.values[at.variable];
    return whole.empty() ? whole : whole.subspan(at.offset, at.bytes);
  };
  const auto scale = [&](int ps, int slice) { return scales.empty() ? 1 : scales[piece(ps, slice).variable]; };
  DividedRound round = apply_->MakeRound({.sequence = ++client_.sequence_,
                                          .generation = client_.generation_,
                                          .local_step = *options.local_step,
                                          .minibatches = options.minibatches,
                                          .work = client_.work_.Seal()});
  const absl::Time began = client_.ps_calls_.loop().Now();
  const absl::Time give_up = began + client_.options_.gate_patience;
  GateWaitNotice notice(client_.ps_calls_, client_.options_.task, began);
  const auto advance = [&] {
    const Track::Span apply(client_.options_.track, Activity::kApply);
    return round.Advance({bytes, scale});
  };
  for (uint32_t rings = round.rings(); !advance(); rings = round.rings()) {
    const Track::Span waits(client_.options_.track, Activity::kWait);
    const absl::Time now = client_.ps_calls_.loop().Now();
    const int longer = now - began < kLong ? 1 : kLongerSleep;
    const absl::Time slept = now + longer * StoreClientOptions::kRoundSleep;
    if (round.Wait(rings, longer * client_.options_.round_sleep)) continue;
    // Really the time has passed; in a simulated world the others go on here.
    client_.ps_calls_.loop().RunUntil([] { return false; }, slept);
    RETURN_IF_ERROR(CheckPatience(give_up, notice));
    if (apply_ == nullptr) {
      // Under the number of this contribution: what has arrived of it isn't added again.
      --client_.sequence_;
      return client_.PushPullAll(gradient, scales, options);
    }
  }
  if (round.other_values())
    return absl::AbortedError(apply_->fenced()
                                  ? "this worker was taken for lost, and others have gone on without it: it must join "
                                    "again before it writes"
                                  : "the values were loaded anew: they have to be pulled again");
  if (round.ended()) return absl::CancelledError("training has ended");
  ASSIGN_OR_RETURN(StorePushResult result,
                   PushPull([](size_t) { return ByteSpan(); }, {}, {.pull = options.pull, .minibatches = 0}));
  result.dropped = round.dropped();
  return result;
}

}  // namespace muster
