// Bounded staleness (Ho et al., NIPS 2013): each client's pushes are its clock, and a client that is further ahead of
// the slowest than the model's bound waits for its answer (docs/store/gates.md). The clocks are
// in the arena's client records. Lives on the store's event loop.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "muster/store/arena/arena.h"
#include "muster/store/gates/client_table.h"
#include "muster/store/gates/held_answer.h"
#include "muster/store/gates/worker_order.h"

namespace muster {

class StalenessClock {
 public:
  // `clients` and `turns` must outlive it.
  StalenessClock(const ClientTable& clients, const WorkerOrder& turns, AnswerPush answer)
      : clients_(clients), order_(turns), answer_(std::move(answer)) {}

  // `arena` must outlive it, and its model must have a bound.
  void Attach(Arena& arena) { arena_ = &arena; }
  bool attached() const { return arena_ != nullptr; }

  // A new life of a client must not be waited for because of what it missed.
  void Join(int client, absl::Time now);
  // Answers a push that was applied, now or when the slowest client has come near enough.
  void Answer(ConnectionId connection, const PushPullRequest& message, const PushPullReply& reply, absl::Time now,
              Responder responder);
  // Call it when a clock has moved or a client has left.
  void Recheck(absl::Time now);
  void Disconnect(ConnectionId connection);
  void FailAll(const absl::Status& status);

  void Describe(absl::Time now, std::vector<WaitingFor>& waiting) const;

 private:
  struct Ahead {
    HeldAnswer held;
    PushPullReply reply;
  };

  uint64_t ClockOf(int client) const { return arena_->client(client).numbers.clock; }
  // Present, and not about to leave the workers' order, because then its clock stands still for good.
  bool IsWaitedFor(size_t client, absl::Time now) const {
    return clients_.Present(clients_.clients()[client], now) && !order_.Leaves(static_cast<int>(client));
  }
  // Returns the lowest clock of the clients that are waited for, except `but`; the highest number if there are none.
  uint64_t Slowest(absl::Time now, int but = -1) const;
  // Returns the clock that the slowest must have reached before a push at `clock` is answered.
  uint64_t NeededFor(uint64_t clock) const;

  const ClientTable& clients_;
  const WorkerOrder& order_;
  const AnswerPush answer_;
  Arena* arena_ = nullptr;
  std::vector<Ahead> held_;
  std::vector<Ahead> spare_;  // empty: kept for its memory
};

}  // namespace muster
