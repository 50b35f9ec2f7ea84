#include "muster/store/client/overlapped_push.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "muster/base/check.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/store/arena/arena_layout.h"
#include "muster/store/calls/call_trace.h"
#include "muster/store/calls/shutdown_wait.h"
#include "muster/store/client/direct_updates.h"
#include "muster/store/client/gradient_policy.h"

namespace muster {
namespace {

// A channel tells what it knows of a ps that is gone when a call's time is over: that is worth a moment.
constexpr absl::Duration kForLastWords = absl::Seconds(1);

}  // namespace

OverlappedPush::~OverlappedPush() {
  if (unanswered_ > 0) Forget();
}

bool OverlappedPush::Possible() const {
  const ModelBinding& binding = client_.binding_;
  return client_.options_.part_bytes > 0 && !client_.direct_->on() && binding.gate.kind == GateKind::kNone &&
         binding.clock_limit == 0 && !binding.exchanges && !binding.ordered && binding.compensation == 0 &&
         binding.adaptive == 0 && binding.staleness_scale == StalenessScale::kNone &&
         !NeedsAllGradients(binding.optimizer);
}

void OverlappedPush::Begin() {
  Forget();
  places_.resize(client_.bound_.size());
  for (size_t ps = 0; ps < places_.size(); ++ps) {
    Place& place = places_[ps];
    const size_t slices = client_.bound_[ps].slices.size();
    place.waiting.clear();
    place.waiting_bytes = 0;
    place.announced.assign(slices, false);
    place.earlier.assign(slices, false);
    place.opened = false;
    place.incomplete = false;
    place.oldest_version = std::numeric_limits<uint64_t>::max();
    place.newest_version = 0;
  }
}

void OverlappedPush::Ready(size_t variable, ByteSpan gradient) {
  const VariableSpec& spec = client_.binding_.variables[variable];
  // Finish reports a gradient that doesn't fit.
  if (spec.kind != VariableKind::kTrainable || gradient.size() != static_cast<size_t>(spec.bytes())) return;
  for (int ps = 0; ps < client_.num_ps(); ++ps) {
    const std::vector<SlicePiece>& slices = client_.bound_[ps].slices;
    for (size_t i = 0; i < slices.size(); ++i)
      if (slices[i].variable == static_cast<int>(variable)) Add(ps, i, gradient);
    if (places_[ps].waiting_bytes >= client_.options_.part_bytes) SendOpen(ps);
  }
  if (unanswered_ > 0) Pump();
}

void OverlappedPush::Add(int ps, size_t slice, ByteSpan gradient) {
  Place& place = places_[ps];
  if (place.announced[slice]) return;
  place.announced[slice] = true;
  const SlicePiece& whole = client_.bound_[ps].slices[slice];
  const size_t stripe_bytes = kStripeElements * DTypeSize(client_.binding_.variables[whole.variable].dtype);
  const size_t part_bytes = client_.options_.part_bytes;
  for (size_t from = 0; from < whole.bytes;) {
    if (place.waiting_bytes >= part_bytes) SendOpen(ps);
    // Takes whole stripes, enough to fill the part: a part has only one piece of a slice.
    const size_t room = (part_bytes - place.waiting_bytes + stripe_bytes - 1) / stripe_bytes * stripe_bytes;
    const size_t bytes = std::min(room, whole.bytes - from);
    place.waiting.push_back({.slice = slice,
                             .first_stripe = from / stripe_bytes,
                             .stripes = (bytes + stripe_bytes - 1) / stripe_bytes,
                             .from = from,
                             .bytes = gradient.subspan(whole.offset + from, bytes)});
    place.waiting_bytes += bytes;
    from += bytes;
  }
}

// Buffers go whole with the last part, because nobody waits for them.
void OverlappedPush::AddBuffers(int ps) {
  const std::vector<SlicePiece>& slices = client_.bound_[ps].slices;
  for (size_t i = 0; i < slices.size(); ++i) {
    if (slices[i].kind != VariableKind::kBuffer || slices[i].bytes == 0) continue;
    const size_t stripe_bytes = kStripeElements * DTypeSize(client_.binding_.variables[slices[i].variable].dtype);
    places_[ps].waiting.push_back(
        {.slice = i,
         .stripes = (slices[i].bytes + stripe_bytes - 1) / stripe_bytes,
         .bytes = client_.binding_.values[slices[i].variable].subspan(slices[i].offset, slices[i].bytes)});
  }
}

void OverlappedPush::AddEarlier(int ps, std::vector<uint32_t>& earlier) const {
  for (size_t i = 0; i < places_[ps].earlier.size(); ++i)
    if (places_[ps].earlier[i]) earlier.push_back(static_cast<uint32_t>(i));
}

void OverlappedPush::SendOpen(int ps) {
  // The patience begins with Finish: nobody listens while gradients are computed.
  message_.Clear();
  message_.part = UpdatePart::kOpen;
  Send(ps, absl::InfiniteFuture());
  places_[ps].opened = true;
}

void OverlappedPush::SendLast(int ps) {
  message_.Clear();
  message_.minibatches = client_.num_ps() == 1 ? 1 : 0;
  if (places_[ps].opened) {
    message_.part = UpdatePart::kClosing;
    AddEarlier(ps, message_.earlier);
  }
  Send(ps, client_.ps_calls_.loop().Now() + client_.options_.patience);
}

MutableByteSpan OverlappedPush::Target(int ps, size_t slice, size_t from, size_t bytes) {
  const SlicePiece& whole = client_.bound_[ps].slices[slice];
  const size_t offset = whole.offset + from;
  return client_.push_.wire.Incoming(whole.variable, offset,
                                     client_.binding_.values[whole.variable].subspan(offset, bytes));
}

void OverlappedPush::TakeIn() {
  for (const StoreClient::Bound& server : client_.bound_)
    for (const SlicePiece& slice : server.slices)
      if (slice.kind == VariableKind::kTrainable)
        client_.push_.wire.TakeIn(slice.variable, slice.offset,
                                  client_.binding_.values[slice.variable].subspan(slice.offset, slice.bytes));
}

void OverlappedPush::Send(int ps, absl::Time deadline) {
  PushPullRequest& message = message_;
  if (sequence_ == 0) sequence_ = ++client_.sequence_;
  Place& place = places_[ps];
  const std::vector<SlicePiece>& slices = client_.bound_[ps].slices;
  message.stamp = client_.MakeStamp(ps, sequence_);
  message.pull = PullWhat::kTrainable;
  message.pulled_version = client_.bound_[ps].pulled_version;
  message.generation = client_.generation_;
  message.global_step = client_.global_step_;
  message.update = true;
  message.pushed_as = client_.push_.wire.options().gradients;
  message.pulled_as = client_.push_.wire.options().parameters;
  if (ps == 0 && message.part != UpdatePart::kOpen) message.work = client_.work_.Seal();
  // Gradients come in the order of the backward pass; slices, and so the answers, are in the order of the forward pass.
  std::sort(place.waiting.begin(), place.waiting.end(),
            [](const Piece& a, const Piece& b) { return a.slice < b.slice; });
  if (used_calls_ == calls_.size()) calls_.emplace_back();
  StoreCall& call = calls_[used_calls_++];
  call.BeginAgain(ps, StoreMethod::kPushPull);
  auto piece = place.waiting.begin();
  for (size_t i = 0; i < slices.size(); ++i) {
    const bool pushes = piece != place.waiting.end() && piece->slice == i;
    if (pushes) {
      message.pushed.push_back(static_cast<uint32_t>(i));
      if (message.part != UpdatePart::kWhole) {
        message.ranges.push_back(static_cast<uint32_t>(piece->first_stripe));
        message.ranges.push_back(static_cast<uint32_t>(piece->stripes));
      }
      call.bulk.push_back(
          client_.push_.wire.Outgoing(slices[i].variable, slices[i].offset + piece->from, piece->bytes));
    }
    if (slices[i].kind == VariableKind::kTrainable) {
      if (pushes) {
        call.into.push_back(Target(ps, i, piece->from, piece->bytes.size()));
      } else if (message.part != UpdatePart::kOpen && !place.earlier[i]) {
        call.into.push_back(Target(ps, i, 0, slices[i].bytes));
      }
    }
    if (pushes) {
      if (message.part == UpdatePart::kOpen) place.earlier[i] = true;
      ++piece;
    }
  }
  MUSTER_CHECK(piece == place.waiting.end());
  place.waiting.clear();
  place.waiting_bytes = 0;
  EncodeTo(call.control, message);
  ++unanswered_;
  client_.ps_calls_.Send(call, deadline, unanswered_);
}

void OverlappedPush::Pump() {
  client_.ps_calls_.loop().RunUntil([] { return false; }, absl::InfinitePast());
}

absl::Status OverlappedPush::AwaitAll() {
  EventLoop& loop = client_.ps_calls_.loop();
  const auto answered = [this] { return unanswered_ == 0; };
  const absl::Time give_up = loop.Now() + client_.options_.patience + kForLastWords;
  WaitNotices notices(loop.Now(), kSilenceBeforeNotice);
  const auto silent = [this] {
    std::vector<int> places;
    for (const StoreCall& call : calls_)
      if (call.in_flight && std::find(places.begin(), places.end(), call.ps) == places.end()) places.push_back(call.ps);
    return places;
  };
  ShutdownWait wait(client_.ps_calls_, silent);
  absl::StatusOr<bool> waited = false;
  for (;;) {
    waited = wait.RunUntil(answered, std::min(notices.next(), give_up));
    if (!waited.ok() || *waited || loop.Now() >= give_up) break;
    if (!notices.Due(loop.Now())) continue;
    const auto first =
        std::find_if(calls_.begin(), calls_.end(), [](const StoreCall& call) { return call.in_flight.has_value(); });
    const std::string trouble = client_.ps_calls_.Trouble(first->ps);
    LogInfo("waiting ", notices.Since(loop.Now()), " for ", client_.ps_calls_.Name(first->ps), ", which has ",
            unanswered_, " parts of an update to answer", trouble.empty() ? "" : ": ", trouble, "; giving up in ",
            absl::FormatDuration(absl::Ceil(give_up - loop.Now(), absl::Seconds(1))));
  }
  for (const StoreCall& call : calls_)
    if (call.in_flight) client_.ps_calls_.Cancel(call);
  loop.RunUntil(answered, absl::InfiniteFuture());
  RETURN_IF_ERROR(waited.status());
  // Other calls were cancelled because of the one that says why.
  const StoreCall* failed = nullptr;
  for (size_t i = 0; i < used_calls_; ++i)
    if (const StoreCall& call = calls_[i];
        !call.answer.ok() && (failed == nullptr || absl::IsCancelled(failed->answer.status())))
      failed = &call;
  return failed == nullptr ? absl::OkStatus() : client_.ps_calls_.Annotate(failed->ps, failed->answer.status());
}

absl::Status OverlappedPush::Absorb(StoreCall& call, StorePushResult& result) {
  PushPullReply reply;
  RETURN_IF_ERROR(client_.ps_calls_.Annotate(call.ps, Decode(call.answer->control, reply)));
  Place& place = places_[call.ps];
  // What was pulled first may lack everything that was counted after it, except for this update.
  if (!call.into.empty()) place.oldest_version = std::min(place.oldest_version, reply.version + 1);
  place.newest_version = std::max(place.newest_version, reply.version);
  if (reply.incomplete) place.incomplete = true;
  return client_.AbsorbPushPull(call, result);
}

absl::StatusOr<StorePushResult> OverlappedPush::Finish(absl::FunctionRef<ByteSpan(size_t)> gradient,
                                                       bool publish_buffers, Track* track) {
  CallTrace trace(track);
  if (const absl::Status fit = CheckGradients(client_.binding_, gradient); !fit.ok()) {
    Abandon();
    return fit;
  }
  for (int ps = 0; ps < client_.num_ps(); ++ps) {
    const std::vector<SlicePiece>& slices = client_.bound_[ps].slices;
    for (size_t i = 0; i < slices.size(); ++i) {
      if (slices[i].kind != VariableKind::kTrainable) continue;
      if (const ByteSpan bytes = gradient(slices[i].variable); !bytes.empty()) Add(ps, i, bytes);
    }
    if (publish_buffers) AddBuffers(ps);
    SendLast(ps);
  }
  StorePushResult result;
  trace.Sent();
  absl::Status done = AwaitAll();
  if (done.ok())
    trace.Answered(calls_.begin(), calls_.begin() + static_cast<ptrdiff_t>(used_calls_),
                   FlowOf(client_.MakeStamp(0, sequence_).client, sequence_));
  for (size_t i = 0; i < used_calls_ && done.ok(); ++i) done = Absorb(calls_[i], result);
  std::vector<int> incomplete;
  for (int ps = 0; ps < client_.num_ps(); ++ps)
    if (places_[ps].incomplete) incomplete.push_back(ps);
  if (done.ok() && !incomplete.empty())
    done = SendEnds(incomplete, UpdatePart::kClosing, client_.num_ps() == 1 ? 1 : 0, result);
  if (done.ok() && client_.num_ps() > 1) done = SendEnds({}, UpdatePart::kWhole, 1, result);
  if (done.ok() && client_.push_.wire.options().parameters != WirePrecision::kFull) TakeIn();
  if (done.ok())
    for (int ps = 0; ps < client_.num_ps(); ++ps)
      client_.bound_[ps].pulled_version = std::min(places_[ps].oldest_version, places_[ps].newest_version);
  Forget();
  if (done.ok()) done = client_.work_.OnPushAnswered(/*pushed=*/true);
  if (!done.ok()) return done;
  return result;
}

// With `places`: sends the last part again, empty (all open parts are answered, so now it is complete), or tells them
// that the update is given up. Without: every ps has the update, and ps 0 counts it.
absl::Status OverlappedPush::SendEnds(const std::vector<int>& places, UpdatePart part, uint32_t minibatches,
                                      StorePushResult& result) {
  std::vector<StoreCall>& calls = client_.push_.ends;
  calls.resize(std::max<size_t>(places.size(), 1));
  for (size_t i = 0; i < calls.size(); ++i) {
    const int ps = places.empty() ? 0 : places[i];
    calls[i].BeginAgain(ps, StoreMethod::kPushPull);
    message_.Clear();
    message_.stamp = client_.MakeStamp(ps, sequence_);
    message_.minibatches = minibatches;
    message_.generation = client_.generation_;
    if (ps == 0 && part != UpdatePart::kGivenUp) message_.work = client_.work_.Seal();
    if (!places.empty()) {
      message_.pulled_version = client_.bound_[ps].pulled_version;
      message_.global_step = client_.global_step_;
      message_.update = true;
      message_.part = part;
      AddEarlier(ps, message_.earlier);
    }
    EncodeTo(calls[i].control, message_);
  }
  RETURN_IF_ERROR(client_.ps_calls_.Exchange(calls, client_.ps_calls_.loop().Now() + client_.options_.patience));
  for (StoreCall& call : calls) RETURN_IF_ERROR(Absorb(call, result));
  return absl::OkStatus();
}

void OverlappedPush::Abandon() {
  if (sequence_ != 0) {
    // To all ps: one that has nothing of the update would wait for it in a checkpoint's cut.
    std::vector<int> all(client_.num_ps());
    std::iota(all.begin(), all.end(), 0);
    StorePushResult result;
    absl::Status ended = AwaitAll();
    if (ended.ok()) ended = SendEnds(all, UpdatePart::kGivenUp, 0, result);
    if (!ended.ok()) LogWarning("an update that was begun could not be ended: ", ended.message());
  }
  Forget();
}

void OverlappedPush::Forget() {
  for (const StoreCall& call : calls_)
    if (call.in_flight) client_.ps_calls_.Cancel(call);
  client_.ps_calls_.loop().RunUntil([this] { return unanswered_ == 0; }, absl::InfiniteFuture());
  used_calls_ = 0;
  sequence_ = 0;
}

}  // namespace muster
