// Checks one life of a simulated ps after every event, against the ledger and against what it saw before
// (docs/simulation.md lists the invariants). Sits between the network and the store; only reads the store.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "muster/sim/checkpoint_truth.h"
#include "muster/sim/gate_watch.h"
#include "muster/sim/progress_watch.h"
#include "muster/sim/push_ledger.h"
#include "muster/sim/scale_watch.h"
#include "muster/sim/turn_watch.h"
#include "muster/store/service/store_service.h"

namespace muster {

// What must hold over all lives of all ps in one run.
struct ClusterTruth {
  struct Lease {
    uint64_t epoch = 0;
    std::map<uint64_t, std::pair<int, uint64_t>> holders;  // by epoch: row, incarnation
  };
  std::vector<Lease> leases;     // one per ps; a ps without memory of an earlier life begins anew
  std::vector<GateTruth> gates;  // one per ps
  std::map<std::string, BarrierTruth> barriers;
  TurnTruth turns;
  CheckpointTruth checkpoints;
  int64_t highest_step = 0;  // the highest that ps 0 ever had
  std::function<void(const std::string&)> violated;
  std::function<void(const std::function<std::string()>&)> note;  // for the list of events
};

class StoreWatch final : public RequestHandler {
 public:
  struct Peers {
    PushLedger* ledger = nullptr;
    ClusterTruth* truth = nullptr;
    std::function<StoreService*(int)> service;  // of a ps; null if it is dead
  };
  // `inner` is the service, or a plant in front of it. All must outlive this.
  StoreWatch(int ps, StoreService& service, RequestHandler& inner, Peers peers);

  void OnConnect(ConnectionId connection, const std::string& peer) override { inner_.OnConnect(connection, peer); }
  absl::StatusOr<std::unique_ptr<BulkTarget>> PrepareBulk(const IncomingRequest& request) override;
  void Handle(IncomingRequest& request, std::unique_ptr<BulkTarget> bulk, Responder responder) override;
  void OnDisconnect(ConnectionId connection) override;

  // Call at the end of the life, and of the run: checks everything, including the values.
  void VerifyAll();
  // Call when the ps's gate has fired.
  void OnFired() { gate_.OnFired(); }

 private:
  void Verify();
  void BeginModel(const StoreService::View& view);
  void VerifyLease(const StoreService::View& view);
  void VerifyCounters(const StoreService::View& view);
  void VerifyCountedPushes();
  // Returns, for each client, the number of its last counted push.
  std::vector<uint64_t> CountedNumbers() const;
  // Returns each client's incarnation.
  std::vector<uint64_t> Lives() const;
  // Checks that every row of the first variable on a ps has at least that many minibatches.
  void CheckHolds(int ps, int64_t minibatches);
  // Reads the rows of slice `slice`; false after a violation.
  bool ReadSlice(Arena& arena, int slice);
  void Violated(const std::string& what) const;

  const int ps_;
  StoreService& service_;
  RequestHandler& inner_;
  const Peers peers_;
  GateWatch gate_;
  ProgressWatch progress_;
  TurnWatch turns_;
  ScaleWatch scales_;
  Arena* arena_ = nullptr;  // as last seen, like the next two
  uint64_t generation_ = 0;
  int64_t step_ = 0;
  uint64_t staleness_before_ = 0;  // sum of the histogram when this model began
  uint64_t updates_before_ = 0;    // updates of the model at that time
  std::vector<std::byte> bytes_;
  std::vector<PushLedger::Row> rows_;
};

}  // namespace muster
