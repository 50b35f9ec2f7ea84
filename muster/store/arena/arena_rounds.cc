#include "muster/store/arena/arena_rounds.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "muster/optim/kernels/add_gradient.h"
#include "muster/optim/kernels/half.h"
#include "muster/store/arena/count_lock.h"
#include "muster/store/arena/round_bell.h"
#include "muster/store/arena/shared_memory_order.h"
#include "muster/store/arena/stripe_lock.h"

namespace muster {

bool ArenaRounds::InRound(int client) const {
  return arena_.client(client).numbers.contributed == header().gate.round + 1;
}

bool ArenaRounds::IsFenced(const Contribution& contribution) const {
  return contribution.direct && Observe(arena_.client(contribution.client).fenced) != 0;
}

GradientHeader& ArenaRounds::gradients(int client) const {
  return *reinterpret_cast<GradientHeader*>(arena_.base_ + arena_.layout().gradients_offset(client));
}

PublishedSlice& ArenaRounds::published(int client, int slice) const {
  return reinterpret_cast<PublishedSlice*>(&gradients(client) + 1)[slice];
}

ArenaCount ArenaRounds::Unchanged(int client) const {
  return {client, client < 0 ? ClientNumbers{} : arena_.client(client).numbers, header().counters, header().gate,
          header().firing};
}

void ArenaRounds::Drop(Arena::CountLock& lock, const Contribution& contribution) {
  ArenaCount counted = Unchanged(contribution.client);
  counted.numbers.last_applied = contribution.sequence;
  ++counted.gate.dropped;
  lock.Commit(counted);
}

bool ArenaRounds::Enough(uint64_t contributors) const {
  const RoundControl& control = header().rounds;
  return control.needed > 0 && contributors >= control.needed && control.collecting == 0 &&
         (control.held_from == 0 || header().gate.round + 1 < control.held_from);
}

// Sets what identifies a firing, before it begins.
void ArenaRounds::Announce(uint64_t next_round) {
  header().next_round = next_round;
  ++header().rounds.firings;
}

// ps 0 is ahead of this ps: the round gets no more contributors than it has.
void ArenaRounds::BeginCatchUp(uint64_t local_step) {
  Announce(local_step);
  Publish<uint64_t>(header().firing, 1 + header().gate.contributors);
  arena_.At(ArenaPoint::kFiring);
}

bool ArenaRounds::CatchUp(uint64_t local_step) {
  const Arena::CountLock lock(arena_);
  if (header().firing != 0) return true;
  if (lead_ || local_step <= header().gate.round || header().rounds.collecting != 0) return false;
  BeginCatchUp(local_step);
  return true;
}

ArenaRounds::Standing ArenaRounds::Enter(const Contribution& contribution) {
  Arena::CountLock lock(arena_);
  if (Observe(header().generation) != contribution.generation || IsFenced(contribution)) return Standing::kOtherValues;
  if (header().firing != 0) return Standing::kFiring;
  const uint64_t round = header().gate.round;
  if (contribution.local_step < round) {
    Drop(lock, contribution);
    return Standing::kLate;
  }
  if (contribution.local_step > round && !lead_) {
    if (header().rounds.collecting == 0) BeginCatchUp(contribution.local_step);
    return Standing::kFiring;
  }
  if (InRound(contribution.client) && !arena_.Has(PlantedBug::kCountContributorTwice)) {
    Drop(lock, contribution);
    return Standing::kTwice;
  }
  if (!contribution.direct) header().rounds.collecting = 1;
  return Standing::kOpen;
}

void ArenaRounds::BeginGradient(const Contribution& contribution) {
  Publish(gradients(contribution.client).sequence, contribution.sequence);
  for (size_t slice = 0; slice < arena_.layout().slices().size(); ++slice)
    published(contribution.client, static_cast<int>(slice)).pushed = 0;
}

void ArenaRounds::PutGradient(int client, int slice, ByteSpan gradient, double scale) {
  std::memcpy(arena_.base_ + arena_.layout().gradient_offset(client, slice), gradient.data(), gradient.size());
  published(client, slice).scale = scale;
  Publish<uint64_t>(published(client, slice).pushed, 1);
  arena_.At(ArenaPoint::kPublishing);
}

ArenaRounds::Standing ArenaRounds::Commit(const Contribution& contribution) {
  arena_.At(ArenaPoint::kPublished);
  Arena::CountLock lock(arena_);
  if (!contribution.direct) header().rounds.collecting = 0;
  if (Observe(header().generation) != contribution.generation || IsFenced(contribution)) return Standing::kOtherValues;
  const WorkRange& work = contribution.work;
  if (work.from > 0 && work.from <= arena_.client(contribution.client).work_returned) return Standing::kOtherValues;
  const bool late = header().firing != 0 || contribution.local_step < header().gate.round;
  if (late && !arena_.Has(PlantedBug::kContributeLate)) {
    Drop(lock, contribution);
    return Standing::kLate;
  }
  ArenaCount counted = Unchanged(contribution.client);
  counted.numbers.last_applied = counted.numbers.contribution_sequence = contribution.sequence;
  counted.numbers.contributed = header().gate.round + 1;
  // A client is in one round at a time: the previous one has fired.
  counted.numbers.work_counted = counted.numbers.work;
  counted.numbers.work = std::max(counted.numbers.work, work.through);
  ++counted.gate.contributors;
  counted.gate.minibatches += contribution.minibatches;
  if (header().firing == 0 && Enough(counted.gate.contributors)) {
    Announce(header().gate.round + 1);
    counted.firing = 1 + counted.gate.contributors;
  }
  lock.Commit(counted);
  if (contribution.direct) ++arena_.client(contribution.client).direct_pushes;
  if (counted.firing == 0) return Standing::kOpen;
  arena_.At(ArenaPoint::kFiring);
  RoundBell(header()).Ring();
  return Standing::kOpen;
}

bool ArenaRounds::SetNeeded(uint64_t needed, bool lost) {
  Arena::CountLock lock(arena_);
  header().rounds.needed = needed;
  const uint64_t lost_before = header().rounds.lost;
  Publish(header().rounds.lost, lost ? header().gate.round + 1 : 0);
  const bool begins = header().firing == 0 && Enough(header().gate.contributors);
  if (begins) {
    Announce(header().gate.round + 1);
    Publish<uint64_t>(header().firing, 1 + header().gate.contributors);
    arena_.At(ArenaPoint::kFiring);
  }
  if (begins || lost_before != header().rounds.lost) RoundBell(header()).Ring();
  return header().firing != 0;
}

void ArenaRounds::HoldFrom(uint64_t limit) {
  Arena::CountLock lock(arena_);
  header().rounds.held_from = limit + 1;
}

void ArenaRounds::Resume() {
  Arena::CountLock lock(arena_);
  header().rounds.held_from = 0;
}

void ArenaRounds::HoldHere() {
  for (;;) {
    {
      Arena::CountLock lock(arena_);
      header().rounds.held_from = 1 + (header().firing == 0 ? header().gate.round : header().next_round);
      if (header().firing == 0) return;
    }
    Fire();
  }
}

void ArenaRounds::Attach() {
  Arena::CountLock lock(arena_);
  header().rounds.collecting = 0;
  header().rounds.held_from = 0;
}

std::optional<ArenaRounds::Firing> ArenaRounds::UnderWay() const {
  const Arena::CountLock lock(arena_);
  if (header().firing == 0) return std::nullopt;
  Firing firing{.number = header().rounds.firings,
                .round = header().gate.round,
                .generation = Observe(header().generation),
                .contributors = header().firing - 1};
  for (int client = 0; client < arena_.layout().num_clients(); ++client)
    if (InRound(client) && gradients(client).sequence == arena_.client(client).numbers.contribution_sequence)
      firing.direct.push_back(client);
  return firing;
}

ArenaRounds::Share ArenaRounds::ShareOf(const Firing& firing, size_t rank, int64_t stripes) {
  const auto sharers = static_cast<int64_t>(firing.direct.size());
  const auto at = static_cast<int64_t>(rank);
  return {stripes * at / sharers, stripes * (at + 1) / sharers};
}

// Each process starts its own share at the beginning, and the others' at their end: two processes meet at most once,
// and none follows another from lock to lock.
void ArenaRounds::Fire(std::optional<int> client) {
  const std::optional<Firing> firing = UnderWay();
  if (!firing) return;
  const int64_t stripes = arena_.layout().num_stripes();
  const auto& sharers = firing->direct;
  for (size_t rank = 0; client && rank < sharers.size(); ++rank) {
    if (sharers[rank] != *client) continue;
    const Share own = ShareOf(*firing, rank, stripes);
    for (int64_t i = own.begin; i < own.end; ++i)
      if (!FireOne(*firing, i, writer(client))) return;
    Publish(arena_.client(*client).share_fired, firing->number);
  }
  const auto fired = [&](int owner) {
    return arena_.Has(PlantedBug::kTrustEveryShare) || Observe(arena_.client(owner).share_fired) == firing->number;
  };
  for (size_t rank = 0; rank < sharers.size(); ++rank) {
    const Share share = ShareOf(*firing, rank, stripes);
    for (int64_t i = share.end; i > share.begin && !fired(sharers[rank]); --i)
      if (!FireOne(*firing, i - 1, writer(client))) return;
  }
  for (int64_t i = 0; sharers.empty() && i < stripes; ++i)
    if (!FireOne(*firing, i, writer(client))) return;
  arena_.At(ArenaPoint::kFired);
  Finish(*firing);
}

bool ArenaRounds::FireOne(const Firing& firing, int64_t stripe, int writer) {
  const int slice = arena_.layout().SliceOf(stripe);
  if (arena_.layout().slices()[slice].accumulator_offset == 0) return true;
  {
    Arena::StripeLock lock(arena_, stripe);
    if (Observe(header().generation) != firing.generation) return false;
    StripeGate& gate = arena_.GateOf(arena_.stripe(stripe));
    // While this stripe hasn't fired the round can't be over, so what the contributors have published stays as it is.
    if (gate.fired > firing.round && !arena_.Has(PlantedBug::kFireTwice)) return true;
    std::vector<int> pushers;
    for (const int client : firing.direct)
      if (published(client, slice).pushed != 0) pushers.push_back(client);
    if (pushers.empty() && gate.gradients == 0) {
      Publish(gate.fired, firing.round + 1);
    } else {
      FireStripe(firing, stripe, pushers, writer);
    }
  }
  arena_.At(ArenaPoint::kUnlocked);
  return true;
}

// The operands of the firing of one stripe.
struct ArenaRounds::Mean {
  int slice = 0;
  DType dtype = DType::kFloat32;
  StripeParts state;
  StripeParts all;      // plus the accumulator if it has anything
  bool summed = false;  // the accumulator has something
  UpdateRule::Step step;
  struct Part {
    const std::byte* gradient;
    double scale;
  };
  std::vector<Part> parts;  // of the clients that have published it
};

// Under the stripe's lock. The rounds are the global steps, which schedules use.
void ArenaRounds::FireStripe(const Firing& firing, int64_t stripe, const std::vector<int>& pushers, int writer) {
  StripeHeader& head = arena_.stripe(stripe);
  StripeGate& gate = arena_.GateOf(head);
  UndoHeader& slot = arena_.undo(writer);
  const int slice = arena_.layout().SliceOf(stripe);
  const ArenaLayout::Slice& layout = arena_.layout().slices()[slice];
  const bool summed = gate.gradients > 0;
  const StripeContent content = summed ? StripeContent::kAll : StripeContent::kState;
  Mean mean{.slice = slice,
            .dtype = arena_.model().variable(arena_.model().slices[slice]).dtype,
            .state = arena_.PartsOf(stripe),
            .all = arena_.PartsOf(stripe, content),
            .summed = summed};
  for (const int client : pushers)
    mean.parts.push_back({arena_.base_ + arena_.layout().gradient_offset(client, slice) +
                              (stripe - layout.first_stripe) * kStripeElements * layout.element_size,
                          published(client, slice).scale});
  if (head.mark < Observe(header().mark)) arena_.SaveAside(stripe);
  arena_.SaveHeader(stripe, content, slot);
  const uint64_t divisor = firing.contributors + gate.abandoned + arena_.ForgetUnfinished(head);
  const RuleSpec& rule = arena_.rule(slice);
  mean.step = {.learning_rate = LearningRateAt(rule.schedule, rule.learning_rate, static_cast<int64_t>(firing.round)),
               .t = head.t + 1,
               .gradient_scale = 1 / static_cast<double>(divisor),
               .clip_value = ClipValue(rule.clip)};
  for (size_t block = 0; block < mean.all.num_blocks(); ++block) {
    arena_.SaveBlock(mean.all, block, slot);
    if (firing.contributors > 0) ApplyMean(mean, block);
    const MutableByteSpan sum = mean.all.block(mean.all.count - 1, block);
    if (summed) std::memset(sum.data(), 0, sum.size());
    arena_.At(ArenaPoint::kBlockChanged);
  }
  if (firing.contributors > 0) {
    ++head.updates;
    ++head.t;
  }
  gate = {.fired = firing.round + 1, .gradients = 0, .abandoned = 0};
  arena_.At(ArenaPoint::kHeaderWritten);
  Publish<uint64_t>(slot.valid, 0);  // this is the commit
  arena_.At(ArenaPoint::kCommitted);
}

void ArenaRounds::ApplyMean(const Mean& mean, size_t block) {
  alignas(64) std::array<std::byte, kUndoBlockElements * sizeof(double)> room;
  const size_t value_bytes = mean.state.block(0, block).size();
  const size_t count = value_bytes / DTypeSize(mean.dtype);
  const MutableByteSpan sum = MutableByteSpan(room).first(count * DTypeSize(SlotDType(mean.dtype)));
  if (mean.summed) {
    std::memcpy(sum.data(), mean.all.block(mean.all.count - 1, block).data(), sum.size());
  } else {
    std::memset(sum.data(), 0, sum.size());
  }
  for (const Mean::Part& part : mean.parts)
    AddGradient(mean.dtype, sum, {part.gradient + block * kUndoBlockElements * DTypeSize(mean.dtype), value_bytes},
                part.scale);
  if (DTypeSize(mean.dtype) != kHalfBytes) return arena_.ApplyBlock(mean.slice, mean.state, block, sum, mean.step);
  // Divides first: the sum may be more than a half can hold.
  UpdateRule::Step step = mean.step;
  auto* const floats = reinterpret_cast<float*>(sum.data());
  for (size_t i = 0; i < count; ++i) floats[i] *= static_cast<float>(step.gradient_scale);
  step.gradient_scale = 1;
  std::array<std::byte, kUndoBlockElements * kHalfBytes> halves;
  HalvesFromFloats(mean.dtype, floats, halves.data(), count);
  arena_.ApplyBlock(mean.slice, mean.state, block, ByteSpan(halves).first(count * kHalfBytes), step);
}

void ArenaRounds::Finish(const Firing& firing) {
  {
    Arena::CountLock lock(arena_);
    if (header().firing == 0 || header().rounds.firings != firing.number ||
        Observe(header().generation) != firing.generation)
      return;  // another process has finished it
    ArenaCount counted = Unchanged(-1);
    if (firing.contributors > 0) ++counted.counters.updates;
    if (firing.contributors > 0 && lead_) {
      ++counted.counters.global_step;
      counted.counters.minibatches += header().gate.minibatches;
    }
    counted.gate = {.round = header().next_round, .dropped = header().gate.dropped};
    counted.firing = 0;
    lock.Commit(counted);
  }
  RoundBell(header()).Ring();
}

}  // namespace muster
