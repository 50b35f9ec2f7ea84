// The rounds of the synchronous gate in one arena: which client contributes to which round, when a round's contributors
// are fixed, and how their mean is applied stripe by stripe. The ps and the workers on its host do this side by side,
// each in its own process, and each finishes what another has left (docs/store/gates.md and
// docs/store/divided_apply.md). Nothing here waits, except for locks. The state is in the arena, which any number of
// these may share.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "muster/store/arena/arena.h"
#include "muster/store/messages/work_range.h"

namespace muster {

class ArenaRounds {
 public:
  // `arena` must outlive this, and its model must have a synchronous gate. `lead`: this is ps 0, whose rounds are the
  // global steps.
  ArenaRounds(Arena& arena, bool lead) : arena_(arena), lead_(lead) {}

  struct Contribution {
    int client = 0;
    uint64_t sequence = 0;
    uint64_t generation = 0;  // of the values that the gradient was computed from
    uint64_t local_step = 0;  // the round that it is for
    uint32_t minibatches = 0;
    bool direct = false;  // published by the client itself
    WorkRange work = {};  // ps 0: the units of the work queue that it brings
  };
  enum class Standing {
    kOpen,         // the round takes it
    kLate,         // the round has fired, or is firing: the push is dropped, and that is noted
    kTwice,        // the client is in the round already: dropped and noted too, but its sender waits for the round
    kFiring,       // a firing is under way or due: finish it (Fire), and ask again
    kOtherValues,  // other values were loaded since it was computed, its work was given to others, or the ps has taken
                   // its sender for lost
  };
  // Call it before anything is published or accumulated. After kOpen for a contribution that isn't direct, only the ps
  // may begin a firing until its Commit.
  Standing Enter(const Contribution& contribution);
  // Direct: publishes the client's gradient to the others, slice by slice. Only between Enter and Commit.
  void BeginGradient(const Contribution& contribution);
  void PutGradient(int client, int slice, ByteSpan gradient, double scale);
  // Call it when the whole gradient is there: adds it to the round (kOpen), and fixes the contributors if they are
  // enough.
  Standing Commit(const Contribution& contribution);

  // The ps: fires early because a worker has heard of this round from ps 0. True: a firing is under way.
  bool CatchUp(uint64_t local_step);
  // The ps: sets how many contributors a round needs now; `lost`: this round never gets them. Begins a firing if there
  // are enough. True: a firing is under way.
  bool SetNeeded(uint64_t needed, bool lost);
  // The ps: rounds from `limit` on don't begin to fire.
  void HoldFrom(uint64_t limit);
  // Holds from the round now being collected (see HoldFrom), once a firing that is under way is over.
  void HoldHere();
  // Ends the hold.
  void Resume();
  // The ps process has just started, and so isn't in the middle of anything.
  void Attach();

  // Finishes the firing that is under way, if any: first this client's share (none: the ps), then what others have
  // left. Then the next round is collected.
  void Fire(std::optional<int> client = {});

 private:
  // Constant while the firing lasts.
  struct Firing {
    uint64_t number = 0;
    uint64_t round = 0;
    uint64_t generation = 0;
    uint64_t contributors = 0;
    std::vector<int> direct;  // the contributors whose gradients are published
  };
  struct Share {
    int64_t begin = 0;
    int64_t end = 0;
  };

  ArenaHeader& header() const { return arena_.header(); }
  bool InRound(int client) const;
  bool IsFenced(const Contribution& contribution) const;
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
  // False: other values were loaded.
  bool FireOne(const Firing& firing, int64_t stripe, int writer);
  void FireStripe(const Firing& firing, int64_t stripe, const std::vector<int>& pushers, int writer);
  struct Mean;
  void ApplyMean(const Mean& mean, size_t block);
  void Finish(const Firing& firing);

  Arena& arena_;
  const bool lead_;
};

}  // namespace muster
