// The workers' order. In an ordered model each worker asks for its turn before it pushes. It is answered when every
// worker before it has pushed as often as it is about to, and every worker after it as often as it has; with a
// synchronous gate, when every worker before it is in the round (docs/store/gates.md). No
// first turn comes before all have asked for theirs, so that all have pulled the same values. Absent workers are waited
// for, but not workers that are done or say that they leave; a leaving worker is answered when all leave. Clocks and
// rounds are in the arena; questions in memory only. Lives on the store's event loop.
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

  // The sender must be known, and its values be the arena's. A repeated question is held beside the first: this ps
  // doesn't know on which connection its sender listens.
  void Ask(ConnectionId connection, const AwaitTurnRequest& message, absl::Time now, Responder responder);
  // Call it when a clock has moved, a client has entered a round or is done, or a round has fired.
  void Recheck();
  // Makes `incarnation` the client's process: an earlier one stops waiting, and is told so.
  void Replace(uint32_t client, uint64_t incarnation);
  void Disconnect(ConnectionId connection);
  void FailAll(const absl::Status& status);

  // Whether it has asked to leave and isn't answered yet.
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
  // Whether `other` must push first, or leave too.
  bool IsBefore(int other, const Question& question) const;
  bool IsAnswerable(const Question& question) const;

  const ClientTable& clients_;
  Arena* arena_ = nullptr;
  std::vector<Question> questions_;
};

}  // namespace muster
