#include "muster/store/synchronous_gate.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/check.h"
#include "muster/base/log.h"

namespace muster {

SynchronousGate::SynchronousGate(const ClientTable& clients, bool lead, ArenaProbe* probe, AnswerPush answer)
    : clients_(clients), lead_(lead), probe_(probe), answer_(std::move(answer)) {}

void SynchronousGate::Attach(Arena& arena) {
  MUSTER_CHECK(arena.model().gated());
  arena_ = &arena;
  if (arena_->header().firing == 0) return;
  LogInfo("goes on with the update of round ", round(), ", which an earlier life of this ps had begun");
  FinishFiring();
}

uint64_t SynchronousGate::Needed(absl::Time now) const {
  const GateSpec& gate = arena_->model().gate;
  const bool early = probe_ != nullptr && probe_->Has(PlantedBug::kFireEarly);
  if (!gate.elastic) return early ? std::max(2U, gate.replicas_to_aggregate) - 1 : gate.replicas_to_aggregate;
  uint64_t present = 0;
  for (const ClientTable::Client& client : clients_.clients()) present += clients_.Present(client, now);
  const uint64_t needed = std::max<uint64_t>(1, std::min<uint64_t>(gate.replicas_to_aggregate, present));
  return early ? std::max<uint64_t>(2, needed) - 1 : needed;
}

// Who is dead may come back, who is done does not.
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
  bool dropped = false;
  if (numbers.last_applied >= message.stamp.sequence) {
    dropped = numbers.contribution_sequence != message.stamp.sequence;
    if (dropped || !InRound(client)) return answer_(message, {.dropped = dropped}, std::move(responder));
  } else if (message.local_step < round()) {
    Drop(message);
    return answer_(message, {.dropped = true}, std::move(responder));
  } else {
    // ps 0 is farther than this ps: the round gets no more contributors than it has.
    if (message.local_step > round() && !lead_) Fire(message.local_step);
    dropped = InRound(client) && (probe_ == nullptr || !probe_->Has(PlantedBug::kCountContributorTwice));
    dropped ? Drop(message) : Add(message, bulk);
  }
  held_.push_back({{connection, now, message, std::move(responder)}, round(), dropped});
  Look(now);
}

void SynchronousGate::Add(const PushPullRequest& message, ByteSpan bulk) {
  const StoreModel& model = arena_->model();
  const int client = static_cast<int>(message.stamp.client);
  Arena::Push push{.client = client, .sequence = message.stamp.sequence, .generation = message.generation};
  for (size_t i = 0; i < message.pushed.size(); ++i) {
    const uint32_t slice = message.pushed[i];
    push.gradient_scale = message.scales.empty() ? 1 : message.scales[i];
    const ByteSpan bytes = bulk.first(model.slices[slice].bytes);
    bulk = bulk.subspan(bytes.size());
    // The generation can't change in between: it is this process that loads, on this loop.
    if (model.variable(model.slices[slice]).kind == VariableKind::kTrainable) {
      MUSTER_CHECK(arena_->Accumulate(static_cast<int>(slice), push, bytes));
    } else {
      MUSTER_CHECK(arena_->Apply(static_cast<int>(slice), push, bytes, {}));
    }
  }
  Arena::Counted counted{client, arena_->client(client).numbers, arena_->header().counters, arena_->header().gate};
  counted.numbers.last_applied = counted.numbers.contribution_sequence = message.stamp.sequence;
  counted.numbers.contributed = round() + 1;
  ++counted.gate.contributors;
  counted.gate.minibatches += message.minibatches;
  arena_->Count(counted);
}

void SynchronousGate::Drop(const PushPullRequest& message) {
  const int client = static_cast<int>(message.stamp.client);
  Arena::Counted counted{client, arena_->client(client).numbers, arena_->header().counters, arena_->header().gate};
  counted.numbers.last_applied = message.stamp.sequence;
  ++counted.gate.dropped;
  arena_->Count(counted);
}

void SynchronousGate::Fire(uint64_t next_round) {
  arena_->BeginFiring(next_round);
  FinishFiring();
  Release();
}

void SynchronousGate::FinishFiring() {
  const ArenaHeader& header = arena_->header();
  const bool contributed = header.firing > 1;
  arena_->Fire();
  Arena::Counted counted{.counters = header.counters, .gate = header.gate};
  if (contributed) ++counted.counters.updates;
  if (contributed && lead_) {
    ++counted.counters.global_step;
    counted.counters.minibatches += header.gate.minibatches;
  }
  counted.gate = {.round = header.next_round, .dropped = header.gate.dropped};
  arena_->Count(counted);
}

void SynchronousGate::Release() {
  for (Contributor& contributor : std::exchange(held_, {})) {
    if (contributor.round >= round()) {
      held_.push_back(std::move(contributor));
    } else {
      answer_(contributor.held.request, {.dropped = contributor.dropped}, std::move(contributor.held.responder));
    }
  }
}

void SynchronousGate::Look(absl::Time now) {
  if (arena_ == nullptr || round() >= first_held_) return;
  if (arena_->header().gate.contributors >= Needed(now)) return Fire(round() + 1);
  if (held_.empty() || !CanNotFire(now)) return;
  FailAll(absl::CancelledError(absl::StrCat("training has ended: round ", round(), " needs ", Needed(now),
                                            " contributors, but so many workers are done that it can't have them")));
}

void SynchronousGate::Disconnect(ConnectionId connection) {
  std::erase_if(held_, [&](const Contributor& contributor) { return contributor.held.connection == connection; });
}

void SynchronousGate::FailAll(const absl::Status& status) {
  for (Contributor& contributor : std::exchange(held_, {})) contributor.held.responder.Fail(status);
}

void SynchronousGate::Describe(absl::Time now, std::vector<WaitingFor>& waiting) const {
  if (held_.empty()) return;
  std::vector<std::string> missing;
  for (size_t i = 0; i < clients_.clients().size(); ++i)
    if (!InRound(static_cast<int>(i)) && !clients_.clients()[i].done) missing.push_back(clients_.clients()[i].task);
  const std::string what =
      absl::StrCat("round ", round(), ", which has ", arena_->header().gate.contributors, " of ", Needed(now),
                   " contributors; not among them: ", missing.empty() ? "nobody" : absl::StrJoin(missing, ", "));
  for (const Contributor& contributor : held_) waiting[contributor.held.client()] = {what, contributor.held.since};
}

}  // namespace muster
