#include "muster/store/service/push_requests.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/status_macros.h"
#include "muster/store/arena/count_lock.h"
#include "muster/store/arena/shared_memory_order.h"
#include "muster/store/service/answer_memory.h"
#include "muster/store/service/elastic_force.h"
#include "muster/store/service/push_part.h"
#include "muster/store/service/pushed_slices.h"
#include "muster/store/service/work_requests.h"
#include "muster/transport/messages/codec.h"

namespace muster {
namespace {

// Which values the reply goes with: read before they are copied, for workers of this host may be changing them, and
// count on. What they count meanwhile may be missing in the copy; and a client that has got some of a later round's has
// a token that is too old, so its gradients are dropped.
void NameValues(Arena& arena, PushPullReply& reply) {
  reply.version = Observe(arena.header().counters.updates);
  reply.round = Observe(arena.header().gate.round);
}

// "variable 'n' is of whole numbers" of the first such that is updated; empty: there is none.
std::string WholeNumbers(const StoreModel& model, const PushPullRequest& message) {
  for (const uint32_t index : message.pushed) {
    const VariableSpec& variable = model.variable(model.slices[index]);
    if (!IsFloatingPoint(variable.dtype) && variable.kind == VariableKind::kTrainable)
      return absl::StrCat("variable '", variable.name, "' is of whole numbers");
  }
  return "";
}

absl::Status CheckPulledCopy(const StoreModel& model, const PushPullRequest& message) {
  if (!message.with_pulled && message.compensation == 0 && message.adaptive == 0) return absl::OkStatus();
  for (const auto& [what, number] :
       {std::pair("a compensation", message.compensation), std::pair("an adaptive scale", message.adaptive)}) {
    if (number == 0 || (message.with_pulled && std::isfinite(number) && number > 0)) continue;
    return absl::InvalidArgumentError(absl::StrCat(what, " of ", number,
                                                   message.with_pulled ? "" : " without the pulled copy",
                                                   "; accepted: 0 and more, with it"));
  }
  if (message.compensation > 0 && message.adaptive > 0)
    return absl::InvalidArgumentError(absl::StrCat("a compensation of ", message.compensation,
                                                   " and an adaptive scale of ", message.adaptive,
                                                   ": one is for gradients, the other for differences; use one"));
  if (message.contributes)
    return absl::InvalidArgumentError(
        "a round of the synchronous gate takes no pulled copies: its gradients aren't late");
  if (const std::string whole = WholeNumbers(model, message); !whole.empty())
    return absl::InvalidArgumentError(absl::StrCat(whole, ", which aren't changed by how far they have moved"));
  return absl::OkStatus();
}

absl::Status CheckStalenessScale(const StoreModel& model, const PushPullRequest& message) {
  if (message.staleness_scale == StalenessScale::kNone) return absl::OkStatus();
  if (message.staleness_scale > StalenessScale::kInverse)
    return absl::InvalidArgumentError(absl::StrCat("unknown scale by staleness ",
                                                   static_cast<int>(message.staleness_scale),
                                                   "; accepted: 0 none, 1 1/(staleness + 1), 2 1/staleness"));
  if (message.contributes)
    return absl::InvalidArgumentError(
        "a round of the synchronous gate takes no scale by staleness: its gradients aren't late");
  if (message.exchange != 0)
    return absl::InvalidArgumentError("an elastic exchange has no scale by staleness: both sides move by alpha");
  if (const std::string whole = WholeNumbers(model, message); !whole.empty())
    return absl::InvalidArgumentError(absl::StrCat(whole, ", which aren't scaled by staleness"));
  return absl::OkStatus();
}

absl::Status CheckExchange(const StoreModel& model, const PushPullRequest& message) {
  if (message.exchange == 0) return absl::OkStatus();
  if (!model.exchanges) return absl::InvalidArgumentError("the push is an elastic exchange, but the model has none");
  if (!(message.exchange > 0 && message.exchange <= 1))
    return absl::InvalidArgumentError(
        absl::StrCat("an elastic exchange with alpha ", message.exchange, "; accepted: above 0, at most 1"));
  if (message.pull != PullWhat::kNothing || message.with_pulled || message.contributes || !message.scales.empty())
    return absl::InvalidArgumentError("an elastic exchange pulls nothing, and has neither scales nor pulled copies");
  if (message.pushed_as != WirePrecision::kFull)
    return absl::InvalidArgumentError(absl::StrCat("an elastic exchange is sent in fp32, not ",
                                                   WirePrecisionName(message.pushed_as),
                                                   ": worker and centre have to move by the same"));
  // Its answer is what it moved, which a staleness bound would keep back, and the workers' order doesn't.
  if (message.clock > 0 && !model.ordered)
    return absl::InvalidArgumentError("an elastic exchange is no clock of a staleness bound");
  for (const uint32_t index : message.pushed)
    if (model.variable(model.slices[index]).kind != VariableKind::kTrainable)
      return absl::InvalidArgumentError("an elastic exchange is of trainable variables");
  return absl::OkStatus();
}

uint64_t FlowOf(const Stamp& stamp) { return muster::FlowOf(stamp.client, stamp.sequence); }

size_t PullBytes(const StoreModel& model, const HeldPull& pull) {
  size_t bytes = 0;
  for (const PlacedSlice& slice : model.slices)
    if (Pulls(pull.what, model.variable(slice).kind))
      bytes += WireForm(pull.as, model.variable(slice)).bytes(slice.bytes);
  return bytes;
}

}  // namespace

absl::Status PushRequests::Check(ConnectionId connection, const PushPullRequest& message, size_t bulk_bytes) {
  // With or without a slice of this ps.
  if (message.Trains()) RETURN_IF_ERROR(ps_.NeedTraining());
  RETURN_IF_ERROR(ps_.NeedModel());
  RETURN_IF_ERROR(ps_.Hear(connection, message.stamp));
  if (message.pull > PullWhat::kEverything)
    return absl::InvalidArgumentError(absl::StrCat("unknown kind of pull ", static_cast<int>(message.pull)));
  if (message.minibatches > 0 && !ps_.options.lead)
    return absl::InvalidArgumentError("only ps 0 counts the global step");
  const StoreModel& model = ps_.arena->model();
  uint64_t expected = 0;
  int64_t previous = -1;
  for (uint32_t index : message.pushed) {
    if (index >= model.slices.size() || static_cast<int64_t>(index) <= previous)
      return absl::InvalidArgumentError(
          absl::StrCat("push names slice ", index, " of ", model.slices.size(), " (ascending order, each once)"));
    previous = index;
    const VariableSpec& variable = model.variable(model.slices[index]);
    if (variable.kind == VariableKind::kFrozen || variable.kind == VariableKind::kRows)
      return absl::InvalidArgumentError(absl::StrCat("variable '", variable.name, "' is ",
                                                     variable.kind == VariableKind::kFrozen
                                                         ? "frozen and takes no push"
                                                         : "a table of rows and takes no push as a whole"));
  }
  RETURN_IF_ERROR(PushPart::Check(*ps_.arena, message));
  const PushPart part(*ps_.arena, message);
  for (size_t i = 0; i < message.pushed.size(); ++i) {
    const PlacedSlice& slice = model.slices[message.pushed[i]];
    expected += part.bytes(i);
    if (message.with_pulled && model.variable(slice).kind == VariableKind::kTrainable) expected += slice.bytes;
  }
  if (expected != bulk_bytes)
    return absl::InvalidArgumentError(absl::StrCat("a push of ", message.pushed.size(), " slices takes ", expected,
                                                   " bytes, but ", bulk_bytes, " came"));
  if (!message.scales.empty() && message.scales.size() != message.pushed.size())
    return absl::InvalidArgumentError(
        absl::StrCat("a push of ", message.pushed.size(), " slices came with ", message.scales.size(), " scales"));
  RETURN_IF_ERROR(CheckPulledCopy(model, message));
  RETURN_IF_ERROR(CheckExchange(model, message));
  RETURN_IF_ERROR(CheckStalenessScale(model, message));
  RETURN_IF_ERROR(Gates::Check(model, message));
  RETURN_IF_ERROR(WorkRequests::Check(message, ps_.clients.client(message.stamp.client).task, *ps_.arena));
  // A question about the global step alone has no values to do with.
  const bool touches_values = !message.pushed.empty() || message.minibatches > 0 || message.pull != PullWhat::kNothing;
  return touches_values ? ps_.CheckGeneration(message.generation) : absl::OkStatus();
}

absl::Status PushRequests::On(const PushPullRequest& message, IncomingCall& call) {
  // Looked at again although PrepareBulk did: while the bulk came in, a restarted chief may have brought another model,
  // or the sender may have been replaced.
  RETURN_IF_ERROR(Check(call.connection, message, call.bulk.size()));
  const Track::StepScope step(ps_.options.track, Observe(ps_.arena->header().counters.global_step));
  CountNonFinite(message);
  PushAndAnswer(message, call);
  return absl::OkStatus();
}

void PushRequests::PushAndAnswer(const PushPullRequest& message, IncomingCall& call) {
  const ByteSpan bulk = call.bulk;
  if (message.contributes) {
    const Track::Span apply(ps_.options.track, Activity::kApply, {bulk.size(), FlowOf(message.stamp)});
    ++ps_.clients.client(message.stamp.client).pushes;
    gates_.Contribute(call.connection, message, bulk, std::move(call.responder));
    return cut_.Applied(message);
  }
  if (message.exchange > 0) {
    const PushPullReply reply = ApplyPush(message, bulk, {});
    Segments moved;
    for (const uint32_t slice : message.pushed)
      moved.push_back(ExchangeAnswer(*ps_.arena, static_cast<int>(message.stamp.client), static_cast<int>(slice)));
    call.responder.Send(CompleteReply(message.stamp, reply), moved, ps_.arena);
    return gates_.RecheckOrder();
  }
  // An answer that may be kept back is filled when it is sent.
  if (message.clock > 0)
    return gates_.AnswerApplied(call.connection, message, ApplyPush(message, bulk, {}), std::move(call.responder));
  const size_t pull_bytes = PushPart(*ps_.arena, message).PullBytes();
  if (pull_bytes == 0) return call.responder.Send(CompleteReply(message.stamp, ApplyPush(message, bulk, {})));
  const AnswerMemory pulled(call.responder, buffers_, pull_bytes);
  const PushPullReply reply = ApplyPush(message, bulk, pulled.bytes);
  const Track::Span answer(ps_.options.track, Activity::kAnswer, {pull_bytes});
  call.responder.Send(CompleteReply(message.stamp, reply), {pulled.bytes}, pulled.buffer);
}

// Counts a push that wasn't sent because it wasn't finite. The count doesn't survive a restart of the ps; a retry isn't
// counted again.
void PushRequests::CountNonFinite(const PushPullRequest& message) {
  ClientTable::Client& client = ps_.clients.client(message.stamp.client);
  if (!message.non_finite || message.stamp.sequence <= client.last_non_finite) return;
  client.last_non_finite = message.stamp.sequence;
  ++client.non_finite;
}

void PushRequests::Answer(const HeldPull& pull, const PushPullReply& pushed, Responder responder) {
  const size_t pull_bytes = PullBytes(ps_.arena->model(), pull);
  PushPullReply reply = pushed;
  NameValues(*ps_.arena, reply);  // the push itself has been counted long ago
  if (pull_bytes == 0) return responder.Send(CompleteReply(pull.stamp, reply));
  const AnswerMemory pulled(responder, buffers_, pull_bytes);
  MutableByteSpan rest = pulled.bytes;
  const StoreModel& model = ps_.arena->model();
  for (size_t i = 0; i < model.slices.size(); ++i) {
    const VariableSpec& variable = model.variable(model.slices[i]);
    if (!Pulls(pull.what, variable.kind)) continue;
    const size_t bytes = WireForm(pull.as, variable).bytes(model.slices[i].bytes);
    ps_.arena->Read(static_cast<int>(i), rest.first(bytes), pull.as);
    rest = rest.subspan(bytes);
  }
  responder.Send(CompleteReply(pull.stamp, reply), {pulled.bytes}, pulled.buffer);
}

absl::string_view PushRequests::CompleteReply(const Stamp& stamp, PushPullReply reply) {
  reply.global_step = Observe(ps_.arena->header().counters.global_step);
  reply.clock = ps_.arena->client(static_cast<int>(stamp.client)).numbers.clock;
  reply.load = checkpoints_.LoadFor(static_cast<int>(stamp.client));
  EncodeTo(reply_, reply);
  return reply_;
}

PushPullReply PushRequests::ApplyPush(const PushPullRequest& message, ByteSpan bulk, MutableByteSpan pulled) {
  const Track::Span apply(ps_.options.track, message.Trains() ? Activity::kApply : Activity::kPull,
                          {bulk.size() + pulled.size(), message.pushed.empty() ? 0 : FlowOf(message.stamp)});
  PushPullReply reply;
  NameValues(*ps_.arena, reply);
  const uint64_t staleness = reply.version - std::min(reply.version, message.pulled_version);
  // Schedules go by the global step: ps 0 counts it, the others know what the senders have heard from it.
  if (!ps_.options.lead) known_step_ = std::max(known_step_, message.global_step);
  const int64_t global_step = ps_.options.lead ? Observe(ps_.arena->header().counters.global_step) : known_step_;
  PushedSlices(*ps_.arena, message, bulk, pulled).Apply(global_step, staleness);
  const PushPart part(*ps_.arena, message);
  const bool whole = part.CompletesUpdate();
  reply.incomplete = message.part == UpdatePart::kClosing && !whole;
  if (whole) {
    // Buffers alone are no update: they have no staleness, and nobody's gradients get older by them.
    const uint64_t last_applied = ps_.arena->client(message.stamp.client).numbers.last_applied;
    const bool new_update = part.UpdatesSomething() && last_applied < message.stamp.sequence;
    const uint64_t before = CountPush(message, new_update);
    if (new_update) {
      ++reply.version;
      reply.staleness = before - std::min(before, message.pulled_version);
      // By what it was scaled: workers that apply themselves may have counted since.
      if (message.staleness_scale != StalenessScale::kNone) reply.staleness = staleness;
      ++staleness_[std::min<size_t>(reply.staleness, staleness_.size() - 1)];
      ++ps_.clients.client(message.stamp.client).pushes;
    }
  }
  cut_.Applied(message, whole);
  return reply;
}

// The generation can't have changed: it is this process that loads, on this loop.
uint64_t PushRequests::CountPush(const PushPullRequest& message, bool new_update) {
  Arena::CountLock lock(*ps_.arena);
  const uint64_t before = ps_.arena->header().counters.updates;
  MUSTER_CHECK(lock.Add({.client = static_cast<int>(message.stamp.client),
                         .sequence = message.stamp.sequence,
                         .generation = ps_.arena->header().generation,
                         .update = new_update,
                         .applied = !message.pushed.empty() || message.clock > 0 || message.update,
                         .minibatches = message.minibatches,
                         .clock = message.clock,
                         .work = message.work,
                         .spent = message.non_finite}));
  return before;
}

absl::Status PushRequests::Check(StoreMethod method, ConnectionId connection, const RowsRequest& message,
                                 size_t bulk_bytes) {
  if (method == StoreMethod::kPushRows) RETURN_IF_ERROR(ps_.NeedTraining());
  RETURN_IF_ERROR(ps_.NeedModel());
  RETURN_IF_ERROR(ps_.Hear(connection, message.stamp));
  RETURN_IF_ERROR(CheckRowsRequest(ps_.arena->model(), method, message, bulk_bytes));
  return ps_.CheckGeneration(message.generation);
}

absl::Status PushRequests::On(const RowsRequest& message, IncomingCall& call) {
  // Looked at again although PrepareBulk did: see above.
  RETURN_IF_ERROR(Check(call.method, call.connection, message, call.bulk.size()));
  if (call.method == StoreMethod::kPushRows) {
    if (!ps_.options.lead) known_step_ = std::max(known_step_, message.global_step);
    const RuleSpec& rule = ps_.arena->model().rule(ps_.arena->model().slices[message.slice]);
    const int64_t global_step = ps_.options.lead ? Observe(ps_.arena->header().counters.global_step) : known_step_;
    RETURN_IF_ERROR(
        PushRows(*ps_.arena, message, LearningRateAt(rule.schedule, rule.learning_rate, global_step), call.bulk));
    rows_.pushed += message.rows;
    call.responder.Send({});
    return absl::OkStatus();
  }
  const size_t bytes = GatheredBytes(ps_.arena->model(), message);
  const AnswerMemory gathered(call.responder, buffers_, bytes);
  RETURN_IF_ERROR(GatherRows(*ps_.arena, message, call.bulk, gathered.bytes));
  rows_.gathered += message.rows;
  bytes == 0 ? call.responder.Send({}) : call.responder.Send({}, {gathered.bytes}, gathered.buffer);
  return absl::OkStatus();
}

std::vector<uint64_t> PushRequests::Staleness() const {
  std::vector<uint64_t> all = staleness_;
  for (size_t i = 0; ps_.arena && i < all.size(); ++i) all[i] += ps_.arena->header().staleness[i];
  return all;
}

}  // namespace muster
