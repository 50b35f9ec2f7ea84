// The rounds of the synchronous gate in one arena: who contributes to which, when a round's contributors are fixed, and
// how their mean is applied stripe by stripe. The ps and the workers on its host do this side by side, each in its own
// process, and any of them finishes what another has left (docs/store/gates.md and docs/store/divided_apply.md).
// Nothing here waits, but for locks. The state is in the arena: any number of these may be on one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "muster/store/arena.h"
#include "muster/store/work_range.h"

namespace muster {

class ArenaRounds {
 public:
  // The arena must outlive it, and its model must have such a gate. `lead`: it is ps 0's, whose rounds are the global
  // steps.
  ArenaRounds(Arena& arena, bool lead) : arena_(arena), lead_(lead) {}

  struct Contribution {
    int client = 0;
    uint64_t sequence = 0;
    uint64_t generation = 0;  // of the values that it was computed from
    uint64_t local_step = 0;  // the round that it is for
    uint32_t minibatches = 0;
    bool direct = false;  // published by the client itself
    WorkRange work = {};  // ps 0: what of the work queue it brings
  };
  enum class Standing {
    kOpen,         // the round takes it
    kLate,         // the round has fired, or fires: it is dropped, and that is noted
    kTwice,        // the client is in the round already: likewise, but its sender waits for the round
    kFiring,       // a firing is under way, or has to be: finish it (Fire), and ask again
    kOtherValues,  // other values have been loaded since it was computed, or its work is others' now
  };
  // Before anything of it is published or accumulated. Of one that isn't direct: once it is open nobody but the ps
  // begins a firing, until its Commit.
  Standing Enter(const Contribution& contribution);
  // Direct: puts the client's gradient where the others find it, slice by slice. Only between Enter and Commit.
  void BeginGradient(const Contribution& contribution);
  void PutGradient(int client, int slice, ByteSpan gradient, double scale);
  // All of it is there: it is in the round (kOpen), whose contributors are fixed with it if they are enough.
  Standing Commit(const Contribution& contribution);

  // The ps, by the word of a worker that has heard of this round from ps 0. True: a firing is under way.
  bool CatchUp(uint64_t local_step);
  // The ps: a round needs so many contributors now; `lost`: this round never gets them. Begins a firing if there are
  // enough. True: one is under way.
  bool SetNeeded(uint64_t needed, bool lost);
  // The ps: rounds from `limit` on don't begin to fire.
  void HoldFrom(uint64_t limit);
  // … from the one that is being collected on, once a firing that is under way is over.
  void HoldHere();
  // … and none is held.
  void GoOn();
  // The ps has just begun to live: it is in the middle of nothing.
  void Attach();

  // Finishes the firing that is under way, if there is one: first the share of this client (none: the ps), then what
  // others have left. Then the next round is collected.
  void Fire(std::optional<int> client = {});

 private:
  // Fixed for as long as the firing lasts.
  struct Firing {
    uint64_t number = 0;
    uint64_t round = 0;
    uint64_t generation = 0;
    uint64_t contributors = 0;
    std::vector<int> direct;  // those of them whose gradients are published
  };
  struct Share {
    int64_t begin = 0;
    int64_t end = 0;
  };

  ArenaHeader& header() const { return arena_.header(); }
  bool InRound(int client) const;
  GradientHeader& gradients(int client) const;
  PublishedSlice& published(int client, int slice) const;
  // Under the count lock.
  bool Enough(uint64_t contributors) const;
  void Announce(uint64_t next_round);
  void BeginCatchUp(uint64_t local_step);
  ArenaCount Unchanged(int client) const;
  void Drop(Arena::CountLock& lock, const Contribution& contribution);

  std::optional<Firing> UnderWay() const;
  static Share ShareOf(const Firing& firing, size_t rank, int64_t stripes);
  int writer(std::optional<int> client) const { return client ? *client : arena_.layout().num_clients(); }
  // False: other values have been loaded.
  bool FireOne(const Firing& firing, int64_t stripe, int writer);
  void FireStripe(const Firing& firing, int64_t stripe, const std::vector<int>& pushers, int writer);
  struct Mean;
  void ApplyMean(const Mean& mean, size_t block);
  void Finish(const Firing& firing);

  Arena& arena_;
  const bool lead_;
};

}  // namespace muster
