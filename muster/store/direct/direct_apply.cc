#include "muster/store/direct/direct_apply.h"

#include <algorithm>
#include <atomic>

#include "absl/status/status.h"
#include "muster/store/arena/count_lock.h"
#include "muster/store/arena/shared_memory_order.h"

namespace muster {
namespace {

absl::Status LoadedAnew() { return absl::AbortedError("the values were loaded anew: they have to be pulled again"); }

absl::Status Fenced() {
  return absl::AbortedError(
      "this worker was taken for lost, and others have gone on without it: it must join again before it writes");
}

absl::Status WorkReturned() {
  return absl::AbortedError("this worker's units of the work queue were given to others: it must join again");
}

}  // namespace

void DirectApply::Add(std::unique_ptr<ArenaAttachment> attachment, int client, std::vector<SlicePiece> slices) {
  ArenaRows rows(attachment->arena());
  Place place{
      .attachment = std::move(attachment), .client = client, .slices = std::move(slices), .rows = std::move(rows)};
  const StoreModel& model = place.attachment->arena().model();
  for (const PlacedSlice& slice : model.slices)
    place.rules.push_back(model.variable(slice).kind == VariableKind::kTrainable ? &model.rule(slice) : nullptr);
  places_.push_back(std::move(place));
}

bool DirectApply::hosts_alive() const {
  return std::all_of(places_.begin(), places_.end(), [](const Place& place) { return place.attachment->host_alive(); });
}

bool DirectApply::ended() {
  return std::any_of(places_.begin(), places_.end(),
                     [](Place& place) { return Observe(place.attachment->arena().header().ended) != 0; });
}

uint64_t DirectApply::round() { return Observe(places_[0].attachment->arena().header().gate.round); }

DividedRound DirectApply::MakeRound(const DividedRound::Numbers& numbers) {
  std::vector<DividedRound::Place> places;
  for (Place& place : places_) places.push_back({&place.attachment->arena(), place.client});
  return {places, numbers};
}

bool DirectApply::fenced() {
  return std::any_of(places_.begin(), places_.end(),
                     [](Place& place) { return Observe(place.attachment->arena().client(place.client).fenced) != 0; });
}

bool DirectApply::load_requested() { return Observe(places_[0].attachment->arena().header().load_requested) != 0; }

// Either the ps that begins a hold sees the number, or this process sees the hold: each writes first, then reads.
void DirectApply::Begin(uint64_t sequence) {
  for (Place& place : places_) Publish(place.attachment->arena().client(place.client).direct_begun, sequence);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

std::optional<int> DirectApply::HeldBackBy(uint64_t sequence) {
  for (size_t ps = 0; ps < places_.size(); ++ps) {
    Arena& arena = places_[ps].attachment->arena();
    if (Observe(arena.header().held) != 0 && Observe(arena.client(places_[ps].client).held_through) < sequence)
      return static_cast<int>(ps);
  }
  return std::nullopt;
}

std::optional<int> DirectApply::CutOffPs() {
  for (size_t ps = 0; ps < places_.size(); ++ps)
    if (Observe(places_[ps].attachment->arena().header().held) == kHeldCutOff) return static_cast<int>(ps);
  return std::nullopt;
}

absl::StatusOr<StorePushResult> DirectApply::PushPull(const ModelBinding& binding,
                                                      absl::FunctionRef<ByteSpan(size_t)> gradient,
                                                      const StorePushOptions& options, const Push& push) {
  const int64_t global_step = Observe(places_[0].attachment->arena().header().counters.global_step);
  const bool changes = options.minibatches > 0 || options.publish_buffers;
  bool same = (push.work.from == 0 || !WorkReturnedTo(push.work.from)) && !(changes && fenced());
  for (Place& place : places_) same = same && Apply(place, binding, gradient, options, push, global_step);
  // Every ps has the update: only now may ps 0 count it.
  StorePushResult result;
  for (size_t ps = places_.size(); ps-- > 0;) same = same && Count(places_[ps], options, push, ps == 0, result);
  if (!same) {
    Begin(0);  // nothing is under way
    if (changes && fenced()) return Fenced();
    const bool late = push.work.from > 0 && WorkReturnedTo(push.work.from);
    return late ? WorkReturned() : LoadedAnew();
  }
  return result;
}

bool DirectApply::WorkReturnedTo(uint64_t ticket) {
  Arena& arena = places_[0].attachment->arena();
  return ticket <= Observe(arena.client(places_[0].client).work_returned);
}

bool DirectApply::Apply(Place& place, const ModelBinding& binding, absl::FunctionRef<ByteSpan(size_t)> gradient,
                        const StorePushOptions& options, const Push& push, int64_t global_step) {
  Arena& arena = place.attachment->arena();
  place.pushed = place.updated = false;
  place.started_at = Observe(arena.header().counters.updates);
  for (size_t i = 0; i < place.slices.size(); ++i) {
    const SlicePiece& slice = place.slices[i];
    if (slice.kind == VariableKind::kRows) continue;
    ByteSpan change;
    if (slice.kind == VariableKind::kTrainable) change = gradient(slice.variable);
    if (slice.kind == VariableKind::kBuffer && options.publish_buffers) change = binding.values[slice.variable];
    MutableByteSpan into;
    if (Pulls(options.pull, slice.kind)) into = binding.values[slice.variable].subspan(slice.offset, slice.bytes);
    if (into.data() == place.attachment->value(static_cast<int>(i)).data()) into = {};  // trained in place
    if (change.empty()) {
      if (!into.empty()) arena.Read(static_cast<int>(i), into);
      continue;
    }
    ArenaPush update{.client = place.client, .sequence = push.sequence, .generation = push.generation};
    if (const RuleSpec* rule = place.rules[i])
      update.learning_rate = LearningRateAt(rule->schedule, rule->learning_rate, global_step);
    if (!push.scales->empty()) update.gradient_scale = (*push.scales)[slice.variable];
    place.pushed = true;
    place.updated = place.updated || slice.kind == VariableKind::kTrainable;
    if (!arena.Apply(static_cast<int>(i), update, change.subspan(slice.offset, slice.bytes), into)) return false;
  }
  return true;
}

absl::Status DirectApply::GatherRows(int ps, int slice, const RowReads& reads, MutableByteSpan into) {
  return places_[ps].rows.Gather(slice, reads, into) ? absl::OkStatus() : LoadedAnew();
}

absl::Status DirectApply::PushRows(int ps, int slice, const RowsPush& push, const RowGradients& gradients) {
  if (fenced()) return Fenced();
  Place& place = places_[ps];
  const RuleSpec& rule = place.attachment->arena().rule(slice);
  const int64_t global_step = Observe(places_[0].attachment->arena().header().counters.global_step);
  const ArenaPush update = {.client = place.client,
                            .sequence = push.sequence,
                            .generation = push.generation,
                            .learning_rate = LearningRateAt(rule.schedule, rule.learning_rate, global_step),
                            .gradient_scale = push.scale};
  return place.rows.Push(slice, update, gradients) ? absl::OkStatus() : LoadedAnew();
}

InPlaceMemory DirectApply::InPlace(size_t variable) {
  for (Place& place : places_) {
    const StoreModel& model = place.attachment->arena().model();
    for (size_t i = 0; i < place.slices.size(); ++i)
      if (place.slices[i].variable == static_cast<int>(variable) && place.rules[i] != nullptr &&
          model.slices[i].num_shards == 1)
        return {place.attachment->GiveOut(static_cast<int>(i)), place.attachment->arena().shared_memory()};
  }
  return {};
}

void DirectApply::TakeAlong() {
  for (Place& place : places_) place.attachment->TakeAlong();
}

bool DirectApply::Count(Place& place, const StorePushOptions& options, const Push& push, bool lead,
                        StorePushResult& result) {
  Arena& arena = place.attachment->arena();
  const ArenaCounters& counters = arena.header().counters;
  Arena::CountLock lock(arena);
  const uint64_t before = counters.updates;
  if (options.minibatches > 0 && Observe(arena.client(place.client).fenced) != 0) return false;
  if (!lock.Add({.client = place.client,
                 .sequence = push.sequence,
                 .generation = push.generation,
                 .update = place.updated,
                 .applied = place.pushed || options.minibatches > 0,
                 .minibatches = lead ? options.minibatches : 0,
                 .work = lead ? push.work : WorkRange{}}))
    return false;
  if (place.updated) {
    const uint64_t staleness = before - std::min(before, place.pulled_version);
    result.staleness = std::max(result.staleness, staleness);
    lock.NoteDirect(place.client, staleness);
  }
  // What others have counted meanwhile may have come too late for stripes that were copied before.
  if (options.pull != PullWhat::kNothing) place.pulled_version = place.started_at + (place.updated ? 1 : 0);
  if (lead) result.global_step = counters.global_step;
  return true;
}

}  // namespace muster
