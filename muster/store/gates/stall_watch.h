// Knows which worker keeps the others waiting in a round of the synchronous gate, and since when. A worker that is
// heard but doesn't get on, because its training thread hangs, is excluded after a limit that its own steps set: an
// elastic round then goes on without it, as without a dead one, until it pushes again (docs/store/gates.md, "Who is
// there"). Says in the log who waits for whom. Lives on the store's event loop.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/store/arena/arena.h"
#include "muster/store/gates/client_table.h"

namespace muster {

class StallWatch {
 public:
  // `clients` and `probe` (may be null) must outlive it.
  StallWatch(ClientTable& clients, ArenaProbe* probe) : clients_(clients), probe_(probe) {}

  // `arena` must outlive it, and its model must have a synchronous gate.
  void Attach(Arena& arena);

  // Looks at the round that is being collected; `held_back`: a checkpoint keeps it from firing. True: someone was
  // excluded, or is in again.
  bool Recheck(absl::Time now, bool held_back);
  // When Recheck may have something to do by the mere passing of time; InfiniteFuture if never.
  absl::Time NextCheck() const;
  // A push of this client has come: it is in again.
  void OnPush(int client) { clients_.Readmit(client); }
  // The ps was late by that: the time of its clients has stood still.
  void Forgive(absl::Duration late);
  // "round 322 has waited 10s for worker:1 (1 contributed); worker:1 is excluded after 12s"; empty: nobody
  // waits.
  std::string Describe(absl::Time now) const;

 private:
  struct Debtor {
    absl::Time since = absl::InfiniteFuture();        // the limit runs since then; InfiniteFuture: it doesn't
    absl::Time excluded_at = absl::InfiniteFuture();  // it will be
    uint64_t last_applied = 0;                        // when it was excluded
  };

  uint64_t round() const { return arena_->header().gate.round; }
  bool InRound(size_t client) const;
  bool ReadmitThoseWhoPushed();
  bool ExcludeLate(absl::Time now);
  void StartRound();
  void Note(Debtor& debtor, size_t client, absl::Time now) const;
  absl::Duration LimitOf(const ClientTable::Client& client) const;
  void SayWhoWaits(absl::Time now);

  ClientTable& clients_;
  ArenaProbe* const probe_;
  Arena* arena_ = nullptr;
  uint64_t round_ = 0;
  absl::Time waits_since_ = absl::InfiniteFuture();  // somebody has contributed to round_
  absl::Time next_notice_ = absl::InfiniteFuture();
  std::vector<Debtor> debtors_;  // one per client
};

}  // namespace muster
