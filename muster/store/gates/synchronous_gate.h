// The synchronous gate of one ps: collects gradients until N different workers have contributed, applies their mean as
// one update, and only then answers them (docs/store/gates.md). Keeps the semantics of TensorFlow's
// SyncReplicasOptimizer and ConditionalAccumulator: a gradient older than the round is dropped, the round's number is
// the token. All state is in the arena; only the held answers are here. Lives on the store's event loop.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/store/arena/arena.h"
#include "muster/store/arena/arena_rounds.h"
#include "muster/store/gates/client_table.h"
#include "muster/store/gates/held_answer.h"
#include "muster/store/messages/messages.h"

namespace muster {

class SynchronousGate {
 public:
  // `clients` and `probe` (may be null) must outlive it. `lead`: this is ps 0, whose rounds are the global steps.
  SynchronousGate(const ClientTable& clients, bool lead, ArenaProbe* probe, AnswerPush answer);

  // `arena` must outlive it, and its model must have a synchronous gate. Finishes a firing that a dead process had
  // begun.
  void Attach(Arena& arena);
  bool attached() const { return arena_ != nullptr; }

  // `message` must have been checked; `bulk` is what it pushes.
  void Contribute(ConnectionId connection, const PushPullRequest& message, ByteSpan bulk, absl::Time now,
                  Responder responder);
  // A worker has heard from ps 0 that it collects that round. Another ps then fires what it has collected, with the
  // contributors that it has.
  void CatchUp(uint64_t local_step, absl::Time now);
  // Rounds from `limit` on fire only to catch up with ps 0.
  void HoldFrom(uint64_t limit) { rounds_->HoldFrom(limit); }
  // Holds from the round now being collected (see HoldFrom).
  void HoldHere() { rounds_->HoldHere(); }
  void Resume() { rounds_->Resume(); }
  // Fires if the round is complete, possibly because a client has left.
  void Recheck(absl::Time now);
  void Disconnect(ConnectionId connection);
  // Other values were loaded, or training has ended: fails every request that waits.
  void FailAll(const absl::Status& status);

  // Whether the cut of a checkpoint keeps the round from firing.
  bool held_back() const {
    const uint64_t from = arena_->header().rounds.held_from;
    return from != 0 && round() + 1 >= from;
  }
  bool waiting() const { return !held_.empty(); }
  // Whether workers fire rounds themselves, which this isn't told of.
  bool divided() const { return arena_ != nullptr && arena_->header().rounds.divided != 0; }
  void Describe(absl::Time now, std::vector<WaitingFor>& waiting) const;
  // Describes for the log what the present workers mean for the rounds; empty without a gate.
  std::string Effect(absl::Time now) const;

 private:
  struct Contributor {
    HeldAnswer held;
    uint64_t round = 0;
    bool dropped = false;
  };

  uint64_t round() const { return arena_->header().gate.round; }
  bool InRound(int client) const { return arena_->client(client).numbers.contributed == round() + 1; }
  uint64_t Present(absl::Time now) const;
  // Returns how many contributors the round needs.
  uint64_t Needed(absl::Time now) const;
  // Whether so many clients are done that the round never gets enough.
  bool CanNotFire(absl::Time now) const;
  void Accumulate(const PushPullRequest& message, ByteSpan bulk);
  // Announces what a round needs now, and fires one that has it.
  void Refresh(absl::Time now);
  // Answers the clients whose rounds have fired.
  void Release();

  const ClientTable& clients_;
  const bool lead_;
  ArenaProbe* const probe_;
  const AnswerPush answer_;
  Arena* arena_ = nullptr;
  std::optional<uint64_t> seen_round_;  // the round at the last look
  absl::Time seen_at_;                  // when that round was first seen
  std::optional<ArenaRounds> rounds_;   // of arena_
  std::vector<Contributor> held_;
  std::vector<Contributor> spare_;  // empty: kept for its memory
};

}  // namespace muster
