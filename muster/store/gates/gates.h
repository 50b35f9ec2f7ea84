// Everything that may keep a client waiting for others on one ps: the synchronous gate, bounded staleness, the workers'
// order and barriers, and when to look at them again. Logs which workers are lost meanwhile. Lives on the store's event
// loop.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "muster/store/arena/arena.h"
#include "muster/store/gates/barriers.h"
#include "muster/store/gates/client_table.h"
#include "muster/store/gates/held_answer.h"
#include "muster/store/gates/presence.h"
#include "muster/store/gates/staleness_clock.h"
#include "muster/store/gates/stall_watch.h"
#include "muster/store/gates/synchronous_gate.h"
#include "muster/store/gates/worker_order.h"
#include "muster/transport/event_loop.h"

namespace muster {

class Gates {
 public:
  // `loop`, `clients` and `probe` (may be null) must outlive it.
  Gates(EventLoop& loop, ClientTable& clients, bool lead, ArenaProbe* probe, AnswerPush answer);
  ~Gates();
  Gates(const Gates&) = delete;
  Gates& operator=(const Gates&) = delete;

  // Call it first in whatever happens on the loop: whether this ps was late decides what may be said of its clients.
  void OnTurn();
  // There is a model, or another generation of it: clients that wait for the old one are told so.
  void Attach(Arena& arena);

  // InvalidArgument: the model's gate doesn't take such a push.
  [[nodiscard]] static absl::Status Check(const StoreModel& model, const PushPullRequest& message);
  void Contribute(ConnectionId connection, const PushPullRequest& message, ByteSpan bulk, Responder responder);
  // Answers a push that was applied.
  void AnswerApplied(ConnectionId connection, const PushPullRequest& message, const PushPullReply& reply,
                     Responder responder);
  void OnBarrier(ConnectionId connection, const BarrierRequest& message, Responder responder);
  // The model must be ordered.
  void OnAwaitTurn(ConnectionId connection, const AwaitTurnRequest& message, Responder responder);
  // A push was applied and answered that may have been its sender's turn.
  void RecheckOrder() { order_.Recheck(); }

  // Holds the synchronous gate: rounds from `round` on, or from the round now being collected, don't begin to fire
  // until Resume; see CutFollower.
  void HoldFrom(uint64_t round);
  void HoldHere();
  void Resume();

  // A client has joined: makes `incarnation` its process.
  void Replace(int client, uint64_t incarnation);
  // A new life of a client has joined, and there is a model.
  void Join(int client);
  void Disconnect(ConnectionId connection);
  // A client came, left or said done.
  void Recheck();
  void FailAll(const absl::Status& status);

  // One entry per client.
  std::vector<WaitingFor> Describe() const;
  // See StallWatch::Describe.
  std::string WhoWaits() const { return stalls_.Describe(loop_.Now()); }

 private:
  void ScheduleCheck();
  void FenceTheLost(absl::Time now);
  void CheckStalls();

  EventLoop& loop_;
  ClientTable& clients_;
  const AnswerPush answer_;
  Arena* arena_ = nullptr;  // null: there is no model
  SynchronousGate synchronous_;
  StallWatch stalls_;
  WorkerOrder order_;
  StalenessClock clock_;
  Barriers barriers_;
  Presence presence_;
  std::optional<EventLoop::TimerId> timer_;
};

}  // namespace muster
