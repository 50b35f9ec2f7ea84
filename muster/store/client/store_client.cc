#include "muster/store/client/store_client.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/store/calls/call_trace.h"
#include "muster/store/calls/shutdown_wait.h"
#include "muster/store/client/direct_updates.h"
#include "muster/store/client/gradient_policy.h"

namespace muster {
namespace {

constexpr absl::Duration kDonePatience = absl::Seconds(10);
// How long a process that is asked to stop waits while it joins: reachable ps answer at once.
constexpr absl::Duration kLastJoinPatience = absl::Seconds(1);

}  // namespace

StoreClient::StoreClient(Transport& transport, std::vector<std::string> ps_addresses, StoreClientOptions options)
    : options_(std::move(options)),
      ps_calls_(transport, std::move(ps_addresses), options_),
      work_(ps_calls_),
      bound_(ps_calls_.num_ps()),
      push_{.wire = WireStaging(options_.wire)},
      direct_(std::make_unique<DirectUpdates>(*this)) {}

StoreClient::~StoreClient() { direct_->Close(); }

bool StoreClient::applies_own_updates() const { return direct_->on(); }

absl::Status StoreClient::JoinOne(int ps, bool chief, bool last) {
  const absl::Time give_up = ps_calls_.loop().Now() + options_.join_patience;
  bool said = false;
  for (;;) {
    StoreCall call{
        .ps = ps,
        .method = StoreMethod::kJoin,
        .control = Encode(JoinRequest{options_.task, options_.incarnation, chief, options_.where, options_.life})};
    const absl::Status status =
        ps_calls_.ExchangeOne(call, last ? kLastJoinPatience : JoinPatience(), /*stoppable=*/!last);
    if (status.ok()) return Decode(call.answer->control, ps_calls_.joined(ps));
    // An earlier life of this task may still look alive; its lease tells within seconds.
    if (last || !absl::IsAlreadyExists(status) || ps_calls_.loop().Now() >= give_up) return status;
    if (!std::exchange(said, true)) LogInfo(status.message(), "; waiting for its lease to run out");
    ps_calls_.loop().RunUntil(options_.stop_requested, ps_calls_.loop().Now() + absl::Milliseconds(250));
  }
}

// Nobody is joined before all can be: a lease on the first ps must not run out while the last one is still starting.
absl::Status StoreClient::AwaitAllServers() {
  if (num_ps() == 1) return absl::OkStatus();
  std::vector<StoreCall> calls;
  for (int ps = 0; ps < num_ps(); ++ps) calls.push_back({.ps = ps, .method = StoreMethod::kStatus});
  return ps_calls_.Exchange(calls, ps_calls_.loop().Now() + JoinPatience(), /*stoppable=*/true);
}

absl::Duration StoreClient::JoinPatience() const {
  return was_joined_ ? options_.patience : std::max(options_.patience, options_.first_patience);
}

absl::Status StoreClient::Join(bool chief) {
  absl::Status stopped = AwaitAllServers();
  if (!stopped.ok() && !absl::IsCancelled(stopped)) return stopped;  // a stopped worker joins to say "done"
  // A ps that has lost its memory has lost everybody's place in the order: what the ps know is what counts.
  if (binding_.ordered) clock_ = 0;
  for (int ps = 0; ps < num_ps(); ++ps) {
    const absl::Status joined = JoinOne(ps, chief, /*last=*/false);
    if (absl::IsCancelled(joined)) {
      stopped = joined;
      JoinOne(ps, chief, /*last=*/true).IgnoreError();
      continue;
    }
    RETURN_IF_ERROR(joined);
    if (ps_calls_.joined(ps).ended) return absl::OkStatus();
    sequence_ = std::max(sequence_, ps_calls_.joined(ps).last_sequence);
  }
  was_joined_ = was_joined_ || stopped.ok();
  return stopped.ok() ? work_.Joined() : stopped;
}

bool StoreClient::ready() const {
  for (int ps = 0; ps < num_ps(); ++ps)
    if (!ps_calls_.joined(ps).ready || ps_calls_.joined(ps).generation != ps_calls_.joined(0).generation) return false;
  return true;
}

uint64_t StoreClient::NewestGeneration() const {
  uint64_t newest = 0;
  for (int ps = 0; ps < num_ps(); ++ps) newest = std::max(newest, ps_calls_.joined(ps).generation);
  return newest;
}

bool StoreClient::ended() const {
  for (int ps = 0; ps < num_ps(); ++ps)
    if (ps_calls_.joined(ps).ended) return true;
  return false;
}

void StoreClient::Bind(ModelBinding binding) {
  binding_ = std::move(binding);
  push_.wire.Bind(binding_.variables);
  for (Bound& bound : bound_) bound.slices.clear();
  for (const PlacedSlice& slice : binding_.placement.slices) {
    const VariableSpec& variable = binding_.variables[slice.variable];
    bound_[slice.ps].slices.push_back(
        {slice.variable, slice.offset * DTypeSize(variable.dtype), static_cast<size_t>(slice.bytes), variable.kind});
  }
}

StoreModel StoreClient::ModelOf(int ps) const {
  StoreModel model = ModelOfPs(binding_.variables, binding_.placement, binding_.optimizer, ps);
  model.gate = binding_.gate;
  model.clock_limit = binding_.clock_limit;
  model.exchanges = binding_.exchanges;
  model.ordered = binding_.ordered;
  return model;
}

absl::Status StoreClient::InitializeOne(int ps, int64_t global_step, int64_t minibatches, const RestoredPart* part) {
  InitializeRequest message{.stamp = MakeStamp(ps, ++sequence_),
                            .chief_epoch = ps_calls_.joined(ps).chief_epoch,
                            .model = ModelOf(ps),
                            .with_slots = part != nullptr && part->with_slots,
                            .steps = part != nullptr ? part->snapshot.steps : std::vector<uint64_t>(),
                            .global_step = global_step,
                            .minibatches = minibatches,
                            .generation = generation_,
                            .with_rows = part != nullptr,
                            .work = part != nullptr ? part->work : std::string()};
  StoreCall call{.ps = ps, .method = StoreMethod::kInitialize, .control = Encode(message)};
  if (part != nullptr) {
    call.bulk = {part->snapshot.bytes};
  } else {
    for (const SlicePiece& slice : bound_[ps].slices)
      if (slice.kind != VariableKind::kRows)
        call.bulk.push_back(binding_.values[slice.variable].subspan(slice.offset, slice.bytes));
  }
  return ps_calls_.Transfer(call);
}

absl::Status StoreClient::Initialize(int64_t global_step, int64_t minibatches, const std::vector<RestoredPart>* parts) {
  generation_ = std::max(generation_, NewestGeneration()) + 1;
  // ps 0 last: when it is ready, all are.
  for (int ps = num_ps() - 1; ps >= 0; --ps)
    RETURN_IF_ERROR(InitializeOne(ps, global_step, minibatches, parts != nullptr ? &(*parts)[ps] : nullptr));
  return absl::OkStatus();
}

absl::StatusOr<int64_t> StoreClient::AwaitReady(absl::Time deadline) {
  generation_ = std::max(generation_, NewestGeneration());
  for (;;) {
    std::vector<StoreCall> calls;
    for (int ps = 0; ps < num_ps(); ++ps)
      calls.push_back({.ps = ps,
                       .method = StoreMethod::kAwaitReady,
                       .control = Encode(AwaitReadyRequest{MakeStamp(ps, 0), ModelOf(ps), generation_})});
    const absl::Status answered = ps_calls_.Exchange(calls, deadline, /*stoppable=*/true);
    // The ps are there and keep the answer back: the chief is missing.
    if (absl::IsUnavailable(answered) && ps_calls_.loop().Now() >= deadline)
      return absl::UnavailableError(
          absl::StrCat("the chief has not initialised the model in time (", answered.message(), "); is it running?"));
    RETURN_IF_ERROR(answered);
    std::vector<AwaitReadyReply> replies(calls.size());
    for (size_t ps = 0; ps < calls.size(); ++ps) {
      RETURN_IF_ERROR(ps_calls_.Annotate(static_cast<int>(ps), Decode(calls[ps].answer->control, replies[ps])));
      generation_ = std::max(generation_, replies[ps].generation);
    }
    // A chief that loads a checkpoint reaches one ps after the other: values of two generations don't belong together.
    const bool same = std::all_of(replies.begin(), replies.end(),
                                  [this](const AwaitReadyReply& reply) { return reply.generation == generation_; });
    if (!same) continue;
    RETURN_IF_ERROR(direct_->Open());
    return global_step_ = replies[0].global_step;
  }
}

void StoreClient::AddPullTargets(StoreCall& call, PullWhat what) {
  for (const SlicePiece& slice : bound_[call.ps].slices) {
    if (!Pulls(what, slice.kind)) continue;
    const MutableByteSpan piece = binding_.values[slice.variable].subspan(slice.offset, slice.bytes);
    call.into.push_back(call.narrow_pull ? push_.wire.Incoming(slice.variable, slice.offset, piece) : piece);
  }
}

// In the workers' order the next one's turn at ps 0 begins when the update is counted: the global step, by which
// learning rates go, is then the same in every run.
bool StoreClient::CountsInTurn(const PushPullOptions& options) const {
  return binding_.ordered && num_ps() > 1 && options.minibatches > 0 && !options.local_step;
}

void StoreClient::MakePushPull(StoreCall& call, absl::FunctionRef<ByteSpan(size_t)> gradient,
                               const std::vector<double>& scales, const PushPullOptions& options, uint64_t sequence) {
  const Bound& bound = bound_[call.ps];
  PushPullRequest& message = push_.message;
  message.Clear();
  message.stamp = MakeStamp(call.ps, sequence);
  message.pull = options.pull;
  message.pulled_version = bound.pulled_version;
  message.minibatches = num_ps() == 1 || (options.local_step && call.ps == 0) ? options.minibatches : 0;
  message.generation = generation_;
  message.global_step = global_step_;
  message.contributes = options.local_step.has_value();
  message.local_step = options.local_step.value_or(0);
  message.clock = CountsInTurn(options) && call.ps == 0 ? 0 : options.clock;
  message.non_finite = options.non_finite && call.ps == 0;
  if (call.ps == 0 && (options.minibatches > 0 || options.non_finite)) message.work = work_.Seal();
  message.update = options.minibatches > 0 && !options.local_step;
  if (options.exchange == 0) message.pushed_as = push_.wire.options().gradients;
  // A pull of everything is of a beginning: the values as they are.
  if (options.pull == PullWhat::kTrainable) message.pulled_as = push_.wire.options().parameters;
  call.narrow_pull = message.pulled_as != WirePrecision::kFull;
  AddPullTargets(call, options.pull);
  for (size_t i = 0; i < bound.slices.size(); ++i) {
    const SlicePiece& slice = bound.slices[i];
    ByteSpan pushed;
    if (slice.kind == VariableKind::kTrainable) pushed = gradient(slice.variable);
    if (slice.kind == VariableKind::kBuffer && options.publish_buffers) pushed = binding_.values[slice.variable];
    if (pushed.empty()) continue;
    message.pushed.push_back(static_cast<uint32_t>(i));
    if (!scales.empty()) message.scales.push_back(scales[slice.variable]);
    const ByteSpan piece = pushed.subspan(slice.offset, slice.bytes);
    call.bulk.push_back(options.exchange > 0 ? piece : push_.wire.Outgoing(slice.variable, slice.offset, piece));
  }
  if (options.minibatches > 0 || !message.pushed.empty()) message.staleness_scale = binding_.staleness_scale;
  message.exchange = options.exchange;
  if (options.exchange > 0)
    for (const uint32_t i : message.pushed)
      call.into.push_back(
          options.moved(bound.slices[i].variable).subspan(bound.slices[i].offset, bound.slices[i].bytes));
  if (options.computed_from != nullptr) {
    message.with_pulled = true;
    message.compensation = binding_.compensation;
    message.adaptive = binding_.adaptive;
    for (const uint32_t i : message.pushed) {
      const SlicePiece& slice = bound.slices[i];
      if (slice.kind == VariableKind::kTrainable)
        call.bulk.push_back(options.computed_from(slice.variable).subspan(slice.offset, slice.bytes));
    }
  }
  EncodeTo(call.control, message);
}

absl::Status StoreClient::AbsorbPushPull(StoreCall& call, StepResult& result) {
  PushPullReply reply;
  RETURN_IF_ERROR(ps_calls_.Annotate(call.ps, Decode(call.answer->control, reply)));
  if (call.answer->bulk_bytes != TotalBytes(call.into))
    return ps_calls_.Annotate(call.ps, absl::DataLossError(absl::StrCat("a pull of ", TotalBytes(call.into),
                                                                        " bytes brought ", call.answer->bulk_bytes)));
  if (!call.into.empty()) bound_[call.ps].pulled_version = reply.version;
  if (call.narrow_pull)
    for (const SlicePiece& slice : bound_[call.ps].slices)
      if (slice.kind == VariableKind::kTrainable)
        push_.wire.TakeIn(slice.variable, slice.offset,
                          binding_.values[slice.variable].subspan(slice.offset, slice.bytes));
  clock_ = std::max(clock_, reply.clock);
  result.staleness = std::max(result.staleness, reply.staleness);
  if (call.ps != 0) return absl::OkStatus();
  global_step_ = result.global_step = reply.global_step;
  result.dropped = reply.dropped;
  round_ = reply.round;
  load_request_ = std::move(reply.load);
  return absl::OkStatus();
}

absl::StatusOr<StoreClient::StepResult> StoreClient::PushPull(absl::FunctionRef<ByteSpan(size_t)> gradient,
                                                              const PushPullOptions& options) {
  RETURN_IF_ERROR(CheckGradients(binding_, gradient));
  const bool narrows = !direct_->on() && options.exchange == 0;
  FindSquares(binding_, gradient, narrows ? &push_.wire : nullptr, push_.squares);
  ASSIGN_OR_RETURN(const bool drop, DropsNonFinite(binding_, push_.squares, options_.task, global_step_));
  for (double& square : push_.squares) square *= options.scale * options.scale;
  FindClipScales(binding_, push_.squares, push_.scales);
  if (options.scale != 1 && push_.scales.empty()) push_.scales.assign(binding_.variables.size(), 1);
  for (size_t i = 0; i < push_.scales.size(); ++i)
    if (binding_.variables[i].kind == VariableKind::kTrainable) push_.scales[i] *= options.scale;
  const bool contributes = options.local_step.has_value();
  if (contributes) progress_.OnPush(ps_calls_.loop().Now());
  if (!drop) {
    auto result = PushPullAll(gradient, push_.scales, options);
    if (result.ok() && contributes) progress_.OnAnswer(ps_calls_.loop().Now());
    if (result.ok() && options.minibatches > 0) RETURN_IF_ERROR(work_.OnPushAnswered(!result->dropped));
    return result;
  }
  PushPullOptions nothing = options;
  nothing.non_finite = true;
  if (direct_->on()) nothing.pull = PullWhat::kNothing;  // the bound memory may be what it would be read from
  if (!options.local_step) nothing.minibatches = 0;
  ASSIGN_OR_RETURN(StepResult result, PushPullAll([](size_t) { return ByteSpan(); }, {}, nothing));
  if (contributes) progress_.OnAnswer(ps_calls_.loop().Now());
  RETURN_IF_ERROR(work_.OnPushAnswered(!result.dropped));
  if (direct_->on()) RETURN_IF_ERROR(Pull(options.pull));
  result.dropped = true;
  return result;
}

absl::StatusOr<StoreClient::StepResult> StoreClient::PushPullAll(absl::FunctionRef<ByteSpan(size_t)> gradient,
                                                                 const std::vector<double>& scales,
                                                                 const PushPullOptions& options) {
  if (direct_->on() && !options.non_finite) return direct_->PushPull(gradient, scales, options);
  const uint64_t sequence = ++sequence_;
  Track* const track = options.recorded ? options_.track : nullptr;
  CallTrace trace(track);
  std::vector<StoreCall>& calls = push_.calls;
  calls.resize(bound_.size());
  for (int ps = 0; ps < num_ps(); ++ps) {
    calls[ps].BeginAgain(ps, StoreMethod::kPushPull);
    MakePushPull(calls[ps], gradient, scales, options, sequence);
  }
  const bool gated = options.local_step.has_value();
  trace.Sent();
  const bool held_back = gated || (options.clock > 0 && binding_.clock_limit > 0);
  RETURN_IF_ERROR(held_back ? ps_calls_.ExchangeHeldBack(calls)
                            : ps_calls_.Exchange(calls, ps_calls_.loop().Now() + options_.patience));
  trace.Answered(calls.begin(), calls.end(),
                 options.minibatches > 0 ? FlowOf(MakeStamp(0, sequence).client, sequence) : 0);
  StepResult result;
  for (StoreCall& call : calls) RETURN_IF_ERROR(AbsorbPushPull(call, result));
  if (num_ps() == 1 || options.minibatches == 0 || gated) return result;
  // Every ps has the update: only now does ps 0 count it.
  const Track::Span wait(track, Activity::kWait);
  push_.ends.resize(1);
  StoreCall& count = push_.ends[0];
  count.BeginAgain(0, StoreMethod::kPushPull);
  push_.message.Clear();
  push_.message.stamp = MakeStamp(0, sequence);
  push_.message.minibatches = options.minibatches;
  push_.message.generation = generation_;
  push_.message.work = work_.Seal();
  if (CountsInTurn(options)) push_.message.clock = options.clock;
  EncodeTo(count.control, push_.message);
  RETURN_IF_ERROR(ps_calls_.Exchange(push_.ends, ps_calls_.loop().Now() + options_.patience));
  RETURN_IF_ERROR(AbsorbPushPull(count, result));
  return result;
}

absl::Status StoreClient::Barrier(const std::string& name, uint32_t parties, bool elastic) {
  std::vector<StoreCall> calls;
  calls.push_back({.ps = 0,
                   .method = StoreMethod::kBarrier,
                   .control = Encode(BarrierRequest{MakeStamp(0, ++sequence_), name, parties, elastic})});
  return ps_calls_.ExchangeHeldBack(calls);
}

absl::Status StoreClient::AwaitTurn(bool leaves) {
  const Track::Span wait(options_.track, Activity::kWait);
  std::vector<StoreCall> calls;
  for (int ps = 0; ps < num_ps(); ++ps)
    calls.push_back({.ps = ps,
                     .method = StoreMethod::kAwaitTurn,
                     .control = Encode(AwaitTurnRequest{MakeStamp(ps, 0), generation_, clock_, round_, leaves})});
  RETURN_IF_ERROR(ps_calls_.ExchangeHeldBack(calls));
  for (const StoreCall& call : calls) {
    AwaitTurnReply reply;
    RETURN_IF_ERROR(ps_calls_.Annotate(call.ps, Decode(call.answer->control, reply)));
    clock_ = std::max(clock_, reply.clock);
  }
  return absl::OkStatus();
}

InPlaceMemory StoreClient::InPlace(size_t variable) const { return direct_->InPlace(variable); }

absl::Status StoreClient::Pull(PullWhat what) {
  return PushPull([](size_t) { return ByteSpan(); }, {.pull = what, .minibatches = 0}).status();
}

absl::StatusOr<int64_t> StoreClient::ReadGlobalStep() {
  StoreCall call{
      .ps = 0, .method = StoreMethod::kPushPull, .control = Encode(PushPullRequest{.stamp = MakeStamp(0, 0)})};
  RETURN_IF_ERROR(ps_calls_.ExchangeOne(call, options_.patience));
  StepResult result;
  RETURN_IF_ERROR(AbsorbPushPull(call, result));
  return result.global_step;
}

absl::Status StoreClient::Done() {
  // A client that is done writes no more, so a newer one may replace it without killing it.
  direct_->Close();
  std::vector<StoreCall> calls;
  for (int ps = 0; ps < num_ps(); ++ps)
    if (ps_calls_.joined(ps).ps_incarnation != 0)  // it has answered a join
      calls.push_back({.ps = ps, .method = StoreMethod::kDone, .control = Encode(DoneRequest{MakeStamp(ps, 0)})});
  const absl::Status told =
      ps_calls_.Exchange(calls, ps_calls_.loop().Now() + std::min(options_.patience, kDonePatience));
  // A ps that has heard it from everyone goes, and its last answer may be lost. One that is down learns it from the
  // lease.
  if (!absl::IsUnavailable(told) && !IsInterrupted(told)) return told;
  LogWarning("done, but not everyone has said that it was heard: ", told.message());
  return absl::OkStatus();
}

absl::Status StoreClient::Shutdown(const std::string& reason) {
  std::vector<StoreCall> calls;
  for (int ps = 0; ps < num_ps(); ++ps)
    calls.push_back({.ps = ps, .method = StoreMethod::kShutdown, .control = Encode(ShutdownRequest{reason})});
  return ps_calls_.Exchange(calls, ps_calls_.loop().Now() + options_.patience);
}

absl::Status StoreClient::ReportLoad(const absl::StatusOr<int64_t>& global_step) {
  ReportLoadRequest message{.stamp = MakeStamp(0, 0)};
  if (global_step.ok()) {
    message.global_step = *global_step;
  } else {
    message.error = std::string(global_step.status().message());
  }
  StoreCall call{.ps = 0, .method = StoreMethod::kReportLoad, .control = Encode(message)};
  RETURN_IF_ERROR(ps_calls_.ExchangeOne(call, options_.patience));
  load_request_.clear();  // ps 0 has said it with every answer until now
  return absl::OkStatus();
}

}  // namespace muster
