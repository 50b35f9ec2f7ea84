// The workers' order: in an ordered model each worker asks for its turn before it pushes, and is answered when
// everybody before it has pushed as often as it is about to, and everybody after it as often as it has; with a
// synchronous gate, when everybody before it is in the round (docs/store_protocol.md, "The workers' order"). Nobody's
// first turn comes before all have asked for theirs, so that all have pulled the same values. Who isn't there is waited
// for; who is done or says that it leaves isn't, and who leaves is answered when all do. Clocks and rounds are in the
// arena; questions in memory only. Lives on the store's event loop.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/store/arena/arena.h"
#include "muster/store/gates/client_table.h"
#include "muster/store/gates/held_answer.h"
#include "muster/store/messages/messages.h"

namespace muster {

class WorkerOrder {
 public:
  // `clients` must outlive it.
  explicit WorkerOrder(const ClientTable& clients) : clients_(clients) {}

  // `arena` must outlive it, and its model must be ordered.
  void Attach(Arena& arena) { arena_ = &arena; }

  // The sender is known, and its values are the arena's. A question that comes again is held beside the first: this ps
  // doesn't know on which connection its sender listens.
  void Ask(ConnectionId connection, const AwaitTurnRequest& message, absl::Time now, Responder responder);
  // Somebody's clock has moved, somebody has come into a round or is done, or a round has fired.
  void Look();
  // The client's process is that one from now on: an earlier one waits for nothing any more, and is told so.
  void Replace(uint32_t client, uint64_t incarnation);
  void Disconnect(ConnectionId connection);
  void FailAll(const absl::Status& status);

  // It has asked to leave, and isn't answered yet.
  bool Leaves(int client) const;

  void Describe(std::vector<WaitingFor>& waiting) const;

 private:
  struct Question {
    ConnectionId connection{};
    absl::Time since;
    Stamp stamp;
    bool leaves = false;
    Responder responder;

    int client() const { return static_cast<int>(stamp.client); }
  };

  uint64_t ClockOf(int client) const { return arena_->client(client).numbers.clock; }
  bool InRound(int client) const;
  bool Asks(int client) const;
  // `other` has to push first, or to leave, too.
  bool IsBefore(int other, const Question& question) const;
  bool IsAnswerable(const Question& question) const;

  const ClientTable& clients_;
  Arena* arena_ = nullptr;
  std::vector<Question> questions_;
};

}  // namespace muster
