#include "muster/store/gates/synchronous_gate.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/check.h"
#include "muster/base/log.h"

namespace muster {

using Standing = ArenaRounds::Standing;

SynchronousGate::SynchronousGate(const ClientTable& clients, bool lead, ArenaProbe* probe, AnswerPush answer)
    : clients_(clients), lead_(lead), probe_(probe), answer_(std::move(answer)) {}

void SynchronousGate::Attach(Arena& arena) {
  MUSTER_CHECK(arena.model().gated());
  const bool found = arena_ == nullptr && arena.header().firing != 0;
  arena_ = &arena;
  rounds_.emplace(arena, lead_);
  rounds_->Attach();
  if (!found) return;
  LogInfo("goes on with the update of round ", round(), ", which an earlier life of this ps had begun");
  rounds_->Fire();
}

uint64_t SynchronousGate::Present(absl::Time now) const {
  uint64_t present = 0;
  for (const ClientTable::Client& client : clients_.clients()) present += clients_.Present(client, now);
  return present;
}

uint64_t SynchronousGate::Needed(absl::Time now) const {
  const GateSpec& gate = arena_->model().gate;
  const bool early = probe_ != nullptr && probe_->Has(PlantedBug::kFireEarly);
  if (!gate.elastic) return early ? std::max(2U, gate.replicas_to_aggregate) - 1 : gate.replicas_to_aggregate;
  const uint64_t needed = std::max<uint64_t>(1, std::min<uint64_t>(gate.replicas_to_aggregate, Present(now)));
  return early ? std::max<uint64_t>(2, needed) - 1 : needed;
}

// A dead client may come back, one that is done doesn't.
bool SynchronousGate::CanNotFire(absl::Time now) const {
  uint64_t possible = arena_->header().gate.contributors;
  for (size_t i = 0; i < clients_.clients().size(); ++i)
    possible += !clients_.clients()[i].done && !InRound(static_cast<int>(i)) ? 1 : 0;
  return possible < Needed(now);
}

void SynchronousGate::Contribute(ConnectionId connection, const PushPullRequest& message, ByteSpan bulk, absl::Time now,
                                 Responder responder) {
  const int client = static_cast<int>(message.stamp.client);
  const ClientNumbers& numbers = arena_->client(client).numbers;
  const ArenaRounds::Contribution contribution = {.client = client,
                                                  .sequence = message.stamp.sequence,
                                                  .generation = message.generation,
                                                  .local_step = message.local_step,
                                                  .minibatches = message.minibatches,
                                                  .work = message.work};
  bool dropped = false;
  if (numbers.last_applied >= message.stamp.sequence) {
    dropped = numbers.contribution_sequence != message.stamp.sequence;
    if (dropped || !InRound(client)) return answer_(PullOf(message), {.dropped = dropped}, std::move(responder));
  } else {
    // The sender may have counted as lost until now: the round then needs one more.
    Refresh(now);
    Standing standing = rounds_->Enter(contribution);
    while (standing == Standing::kFiring) {
      rounds_->Fire();
      standing = rounds_->Enter(contribution);
    }
    // The generation can't change: only this process loads values, on this loop.
    MUSTER_CHECK(standing != Standing::kOtherValues);
    if (standing == Standing::kLate) return answer_(PullOf(message), {.dropped = true}, std::move(responder));
    dropped = standing == Standing::kTwice;
    if (!dropped) {
      Accumulate(message, bulk);
      MUSTER_CHECK(rounds_->Commit(contribution) == Standing::kOpen);
    }
  }
  // Not the round that is being collected now: workers may have fired it.
  held_.push_back({{connection, now, PullOf(message), std::move(responder)}, numbers.contributed - 1, dropped});
  Recheck(now);
}

void SynchronousGate::Accumulate(const PushPullRequest& message, ByteSpan bulk) {
  const StoreModel& model = arena_->model();
  Arena::Push push{.client = static_cast<int>(message.stamp.client),
                   .sequence = message.stamp.sequence,
                   .generation = message.generation,
                   .sent_as = message.pushed_as};
  for (size_t i = 0; i < message.pushed.size(); ++i) {
    const uint32_t slice = message.pushed[i];
    push.gradient_scale = message.scales.empty() ? 1 : message.scales[i];
    const VariableSpec& variable = model.variable(model.slices[slice]);
    const ByteSpan bytes = bulk.first(WireForm(message.pushed_as, variable).bytes(model.slices[slice].bytes));
    bulk = bulk.subspan(bytes.size());
    // The generation can't change meanwhile: only this process loads values, on this loop.
    if (variable.kind == VariableKind::kTrainable) {
      MUSTER_CHECK(arena_->Accumulate(static_cast<int>(slice), push, bytes));
    } else {
      MUSTER_CHECK(arena_->Apply(static_cast<int>(slice), push, bytes, {}));
    }
  }
}

void SynchronousGate::Release() {
  std::vector<Contributor> all = std::exchange(spare_, {});
  all.swap(held_);
  for (Contributor& contributor : all) {
    if (contributor.round >= round()) {
      held_.push_back(std::move(contributor));
    } else {
      answer_(contributor.held.pull, {.dropped = contributor.dropped}, std::move(contributor.held.responder));
    }
  }
  all.clear();
  spare_ = std::move(all);
}

void SynchronousGate::Refresh(absl::Time now) {
  const bool lost = arena_->header().gate.contributors > 0 && !held_back() && CanNotFire(now);
  if (rounds_->SetNeeded(Needed(now), lost)) rounds_->Fire();
}

void SynchronousGate::Recheck(absl::Time now) {
  if (arena_ == nullptr) return;
  Refresh(now);
  if (std::exchange(seen_round_, round()) != round()) seen_at_ = now;
  Release();
  if (held_.empty() || held_back() || !CanNotFire(now)) return;
  FailAll(absl::CancelledError(absl::StrCat("training has ended: round ", round(), " needs ", Needed(now),
                                            " contributors, but so many workers are done that it can't have them")));
}

void SynchronousGate::CatchUp(uint64_t local_step, absl::Time now) {
  while (rounds_->CatchUp(local_step)) rounds_->Fire();
  Recheck(now);
}

void SynchronousGate::Disconnect(ConnectionId connection) {
  std::erase_if(held_, [&](const Contributor& contributor) { return contributor.held.connection == connection; });
}

void SynchronousGate::FailAll(const absl::Status& status) {
  for (Contributor& contributor : std::exchange(held_, {})) contributor.held.responder.Fail(status);
}

void SynchronousGate::Describe(absl::Time now, std::vector<WaitingFor>& waiting) const {
  if (arena_ == nullptr) return;
  std::vector<std::string> missing;
  std::vector<size_t> in_round;
  for (size_t i = 0; i < clients_.clients().size(); ++i) {
    if (InRound(static_cast<int>(i))) {
      in_round.push_back(i);
    } else if (!clients_.clients()[i].done) {
      missing.push_back(clients_.clients()[i].task);
    }
  }
  const std::string what =
      absl::StrCat("round ", round(), ", which has ", arena_->header().gate.contributors, " of ", Needed(now),
                   " contributors; not among them: ", missing.empty() ? "nobody" : absl::StrJoin(missing, ", "));
  // A worker that applies its own updates waits without a message: at most since the round began.
  for (const size_t i : in_round) waiting[i] = {what, seen_round_ == round() ? seen_at_ : now};
  for (const Contributor& contributor : held_) waiting[contributor.held.client()] = {what, contributor.held.since};
}

std::string SynchronousGate::Effect(absl::Time now) const {
  if (arena_ == nullptr) return "";
  const uint64_t present = Present(now);
  const uint64_t needed = Needed(now);
  if (present < needed)
    return absl::StrCat("; rounds wait, for each needs ", needed, needed == 1 ? " worker" : " workers", ": there ",
                        present == 1 ? "is " : "are ", present == 0 ? "none" : absl::StrCat(present));
  return absl::StrCat("; rounds go on with ", needed, " of ", arena_->model().gate.total_replicas);
}

}  // namespace muster
