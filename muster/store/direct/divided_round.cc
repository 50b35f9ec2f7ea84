#include "muster/store/direct/divided_round.h"

#include <algorithm>

#include "muster/store/arena/round_bell.h"
#include "muster/store/arena/shared_memory_order.h"

namespace muster {

using Standing = ArenaRounds::Standing;

DividedRound::DividedRound(const std::vector<Place>& places, const Numbers& numbers) {
  for (size_t ps = 0; ps < places.size(); ++ps)
    parts_.push_back({.arena = places[ps].arena,
                      .rounds = ArenaRounds(*places[ps].arena, ps == 0),
                      .contribution = {.client = places[ps].client,
                                       .sequence = numbers.sequence,
                                       .generation = numbers.generation,
                                       .local_step = numbers.local_step,
                                       .minibatches = ps == 0 ? numbers.minibatches : 0,
                                       .direct = true,
                                       .work = ps == 0 ? numbers.work : WorkRange{}}});
}

bool DividedRound::Advance(const Gradient& gradient) {
  for (size_t ps = 0; ps < parts_.size(); ++ps) Enter(ps, gradient);
  const bool entered =
      std::none_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.stage == Stage::kEntering; });
  // Every ps has the gradient before the first of them counts it; ps 0 counts last.
  for (size_t ps = parts_.size(); entered && ps-- > 0;)
    if (parts_[ps].stage == Stage::kPublished) Commit(ps, gradient);
  for (Part& part : parts_)
    if (part.stage == Stage::kWaiting) Await(part);
  return ended_ || other_values_ ||
         std::all_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.stage == Stage::kOver; });
}

void DividedRound::Enter(size_t ps, const Gradient& gradient) {
  Part& part = parts_[ps];
  if (part.stage != Stage::kEntering || ended_ || other_values_) return;
  ended_ = ended_ || Observe(part.arena->header().ended) != 0;
  if (ended_) return;
  Standing standing = part.rounds.Enter(part.contribution);
  if (standing == Standing::kFiring) {
    part.rounds.Fire(part.contribution.client);
    standing = part.rounds.Enter(part.contribution);
  }
  if (standing == Standing::kOpen) Publish(ps, gradient);
  Note(ps, standing, Stage::kPublished);
}

void DividedRound::Note(size_t ps, Standing standing, Stage next) {
  Part& part = parts_[ps];
  switch (standing) {
    case Standing::kOpen:
      part.stage = next;
      return;
    case Standing::kLate:
      part.stage = Stage::kOver;
      dropped_ = dropped_ || ps == 0;
      return;
    case Standing::kTwice:
      part.stage = Stage::kWaiting;
      dropped_ = dropped_ || ps == 0;
      return;
    case Standing::kOtherValues:
      other_values_ = true;
      return;
    case Standing::kFiring:
      return;  // later
  }
}

void DividedRound::Publish(size_t ps, const Gradient& gradient) {
  Part& part = parts_[ps];
  part.rounds.BeginGradient(part.contribution);
  const StoreModel& model = part.arena->model();
  for (int slice = 0; slice < static_cast<int>(model.slices.size()); ++slice) {
    const VariableKind kind = model.variable(model.slices[slice]).kind;
    if (kind != VariableKind::kTrainable) continue;
    const ByteSpan bytes = gradient.bytes(static_cast<int>(ps), slice);
    if (!bytes.empty())
      part.rounds.PutGradient(part.contribution.client, slice, bytes, gradient.scale(static_cast<int>(ps), slice));
  }
}

void DividedRound::Commit(size_t ps, const Gradient& gradient) {
  Part& part = parts_[ps];
  const StoreModel& model = part.arena->model();
  const ArenaPush push = {.client = part.contribution.client,
                          .sequence = part.contribution.sequence,
                          .generation = part.contribution.generation};
  // Buffers aren't averaged: they come from the chief.
  for (int slice = 0; slice < static_cast<int>(model.slices.size()); ++slice) {
    if (model.variable(model.slices[slice]).kind != VariableKind::kBuffer) continue;
    const ByteSpan bytes = gradient.bytes(static_cast<int>(ps), slice);
    if (!bytes.empty() && !part.arena->Apply(slice, push, bytes, {})) other_values_ = true;
  }
  if (!other_values_) Note(ps, part.rounds.Commit(part.contribution), Stage::kWaiting);
}

void DividedRound::Await(Part& part) {
  ArenaHeader& header = part.arena->header();
  const auto& numbers = part.arena->client(part.contribution.client).numbers;
  const auto over = [&] { return Observe(header.gate.round) >= numbers.contributed; };
  if (Observe(header.generation) != part.contribution.generation) {
    other_values_ = true;
    return;
  }
  if (!over() && Observe(header.firing) != 0) part.rounds.Fire(part.contribution.client);
  if (over()) {
    part.stage = Stage::kOver;
  } else if (Observe(header.ended) != 0 || Observe(header.rounds.lost) == numbers.contributed) {
    ended_ = true;
  }
}

uint32_t DividedRound::rings() const { return RoundBell(parts_[0].arena->header()).rings(); }

bool DividedRound::Wait(uint32_t rings, absl::Duration limit) {
  return RoundBell(parts_[0].arena->header()).Wait(rings, limit);
}

}  // namespace muster
