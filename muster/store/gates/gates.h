// What may keep a client waiting for others: the synchronous gate, bounded staleness, the workers' order and barriers
// of one ps, and when they are to be looked at again; who is lost meanwhile is said in the log. Lives on the store's
// event loop.
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
#include "muster/store/gates/synchronous_gate.h"
#include "muster/store/gates/worker_order.h"
#include "muster/transport/event_loop.h"

namespace muster {

class Gates {
 public:
  // `loop`, `clients` and `probe` (may be null) must outlive it.
  Gates(EventLoop& loop, const ClientTable& clients, bool lead, ArenaProbe* probe, AnswerPush answer);
  ~Gates();
  Gates(const Gates&) = delete;
  Gates& operator=(const Gates&) = delete;

  // There is a model, or another generation of it: who waits for the old one is told so.
  void Attach(Arena& arena);

  // InvalidArgument: the push isn't one that the model's gate takes.
  [[nodiscard]] static absl::Status Check(const StoreModel& model, const PushPullRequest& message);
  void Contribute(ConnectionId connection, const PushPullRequest& message, ByteSpan bulk, Responder responder);
  // Answers a push that was applied.
  void AnswerApplied(ConnectionId connection, const PushPullRequest& message, const PushPullReply& reply,
                     Responder responder);
  void OnBarrier(ConnectionId connection, const BarrierRequest& message, Responder responder);
  // The model is ordered.
  void OnAwaitTurn(ConnectionId connection, const AwaitTurnRequest& message, Responder responder);
  // A push was applied and answered that may have been its sender's turn.
  void LookAtOrder() { order_.Look(); }

  // Of the synchronous gate: rounds from `round` on, or from the one that is being collected on, don't begin to fire
  // until GoOn; see CutFollower.
  void HoldFrom(uint64_t round);
  void HoldHere();
  void GoOn();

  // A client has joined: its process is that one.
  void Replace(int client, uint64_t incarnation);
  // … a new life of it, and there is a model.
  void Join(int client);
  void Disconnect(ConnectionId connection);
  // Somebody came, left or said done.
  void Look();
  void FailAll(const absl::Status& status);

  // One entry a client.
  std::vector<WaitingFor> Describe() const;

 private:
  void LookAgain();

  EventLoop& loop_;
  const ClientTable& clients_;
  const AnswerPush answer_;
  SynchronousGate synchronous_;
  WorkerOrder order_;
  StalenessClock clock_;
  Barriers barriers_;
  Presence presence_;
  std::optional<EventLoop::TimerId> timer_;
};

}  // namespace muster
