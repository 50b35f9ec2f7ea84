// Looks at what one life of a simulated ps makes its clients wait for: that a round of the synchronous gate fires when
// it may and with whom it says, that nobody is answered too far ahead of the slowest, that a barrier opens when all are
// there. Used by StoreWatch; the store is only read.
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

// What is known of the gate of a ps, over its lives.
struct GateTruth {
  uint64_t generation = 0;
  uint64_t round = 0;                                   // as it was last seen
  std::vector<std::vector<PushLedger::Digits>> slices;  // the rows then: nothing but a firing may change them
  bool interrupted = false;                             // it has died in the middle of something since the last firing
};

// Who came to a barrier, and the requests that were answered.
struct BarrierTruth {
  std::set<uint32_t> arrived;
  std::set<std::pair<uint64_t, uint64_t>> opened;  // incarnation, number
};

class GateWatch {
 public:
  struct Peers {
    const PushLedger* ledger = nullptr;
    std::vector<GateTruth>* gates = nullptr;  // one a ps
    std::map<std::string, BarrierTruth>* barriers = nullptr;
    CheckpointTruth* checkpoints = nullptr;
    std::function<void(const std::string&)> violated;
  };
  // All must outlive it.
  GateWatch(int ps, const StoreService& service, Peers peers);

  // After every event at the ps.
  void Look();
  // At ArenaPoint::kFired.
  void OnFired();
  // Stands between a request that may be kept back and its answer; others stay as they are.
  Responder Wrap(const IncomingRequest& request, Responder responder);

 private:
  // What a firing did to one row.
  struct Change {
    uint64_t total = 0;
    uint64_t pushes = 0;
    bool same_worker_twice = false;
  };

  std::optional<std::vector<PushLedger::Digits>> ReadSlice(Arena& arena, int slice);
  std::optional<Change> Compare(const PushLedger::Digits& before, const PushLedger::Digits& after);
  // The rows may have changed by one firing: of so many contributors, if that is known.
  void Inspect(Arena& arena, std::optional<uint64_t> contributors);
  void CheckChange(const Change& change, std::optional<uint64_t> contributors);
  void CheckEnough(const Arena& arena, uint64_t round, uint64_t contributors);
  // Of the rows, for the checkpoints that are cut before `round`.
  void NoteMeans(const Arena& arena, uint64_t round);
  void NoteMark(const MarkRequest& request);
  void CheckClock(uint64_t clock);
  void CheckBarrier(const BarrierRequest& request);
  void Violated(const std::string& what) const;

  const int ps_;
  const StoreService& service_;
  const Peers peers_;
  GateTruth& truth_;
  bool attached_ = false;  // it has seen a model
};

}  // namespace muster
