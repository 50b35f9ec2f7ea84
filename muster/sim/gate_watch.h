// Checks the waiting in one life of a simulated ps: a round of the synchronous gate fires only when it may and with the
// contributors it reports, no client is answered too far ahead of the slowest, and a barrier opens only when all are
// there. Used by StoreWatch; only reads the store.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "muster/sim/checkpoint_truth.h"
#include "muster/sim/push_ledger.h"
#include "muster/store/service/store_service.h"

namespace muster {

// What is known of the gate of a ps over all its lives.
struct GateTruth {
  uint64_t generation = 0;
  uint64_t round = 0;                                   // as last seen
  std::vector<std::vector<PushLedger::Digits>> slices;  // the rows as last seen: only a firing may change them
  bool interrupted = false;                             // died in the middle of an operation since the last firing
};

// The clients that came to a barrier, and the requests that were answered.
struct BarrierTruth {
  std::set<uint32_t> arrived;
  std::set<std::pair<uint64_t, uint64_t>> opened;  // incarnation, number
};

class GateWatch {
 public:
  struct Peers {
    const PushLedger* ledger = nullptr;
    std::vector<GateTruth>* gates = nullptr;  // one per ps
    std::map<std::string, BarrierTruth>* barriers = nullptr;
    CheckpointTruth* checkpoints = nullptr;
    std::function<void(const std::string&)> violated;
  };
  // All must outlive it.
  GateWatch(int ps, const StoreService& service, Peers peers);

  // Call after every event at the ps.
  void Verify();
  // Call at ArenaPoint::kFired.
  void OnFired();
  // Watches the answer to a request that may be held back; returns the responder of any other request unchanged.
  Responder Wrap(const IncomingRequest& request, Responder responder);

 private:
  // What a firing has changed in one row.
  struct Change {
    uint64_t total = 0;
    uint64_t pushes = 0;
    bool same_worker_twice = false;
  };

  std::optional<std::vector<PushLedger::Digits>> ReadSlice(Arena& arena, int slice);
  std::optional<Change> Compare(const PushLedger::Digits& before, const PushLedger::Digits& after);
  // Checks rows that may have changed by one firing with that many contributors, if their number is known.
  void Inspect(Arena& arena, std::optional<uint64_t> contributors);
  void CheckChange(const Change& change, std::optional<uint64_t> contributors);
  void CheckEnough(const Arena& arena, uint64_t round, uint64_t contributors);
  // Records the rows, for checkpoints that are cut before `round`.
  void NoteMeans(const Arena& arena, uint64_t round);
  void NoteMark(const MarkRequest& request);
  void CheckClock(uint64_t clock);
  void CheckBarrier(const BarrierRequest& request);
  void Violated(const std::string& what) const;

  const int ps_;
  const StoreService& service_;
  const Peers peers_;
  GateTruth& truth_;
  bool attached_ = false;  // a model has been seen
};

}  // namespace muster
