// A ps's side of the cut of a checkpoint: keeps updates back while the chief finds out how far all ps have come, lets
// in what has to be inside, sets the mark, and lets go (docs/store_protocol.md, "The cut of a checkpoint"). It lets go
// by its own clock, too: a chief that dies in between stops nobody for long. In memory only. Lives on the store's event
// loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/lifetime.h"
#include "muster/store/arena/arena.h"
#include "muster/store/checkpoints/part_saver.h"
#include "muster/store/gates/client_table.h"
#include "muster/store/gates/gates.h"
#include "muster/store/messages/messages.h"
#include "muster/transport/event_loop.h"
#include "muster/transport/listener.h"

namespace muster {

class CutFollower {
 public:
  // How long a hold lasts without its mark. Two round trips and the rest of a push take much less; nobody should notice
  // a chief that dies.
  static constexpr absl::Duration kLimit = absl::Seconds(2);

  // … while it waits for the rest of updates that come in parts, whose senders are in the middle of computing them.
  static constexpr absl::Duration kLongestWait = absl::Seconds(30);

  // How often a mark looks for updates that processes on the ps's host apply themselves.
  static constexpr absl::Duration kLookAfter = absl::Microseconds(500);

  using Handle = std::function<void(IncomingRequest, std::unique_ptr<BulkTarget>, Responder)>;
  struct Options {
    bool lead = false;
    ArenaProbe* probe = nullptr;  // of tests
    // ps 0: the work queue's state, of an arena whose CountLock is held.
    std::function<std::string(Arena&)> save_work = [](Arena&) { return std::string(); };
  };
  // All must outlive it. `handle` takes what was kept back.
  CutFollower(EventLoop& loop, const ClientTable& clients, Gates& gates, PartSaver& saver, const Options& options,
              Handle handle);
  ~CutFollower();

  // There is the memory of an earlier life of this ps.
  void Recover(Arena& arena);
  // A new life of the client begins, or all values are replaced: whatever it has begun is not under way any more.
  // `highest` is the highest number that any stripe has seen of it.
  void Settle(Arena& arena, int client, uint64_t highest);

  // The sender is the chief, and there is a model.
  void Hold(const HoldRequest& request, std::shared_ptr<Arena> arena, Responder responder);
  void Mark(const MarkRequest& request, Responder responder);
  // Whether it was the hold of that number whose mark was set last.
  bool Marked(const Stamp& chief, uint64_t hold) const { return HoldId{chief.incarnation, hold} == marked_; }

  // Whether a request has to wait; Keep then takes it.
  bool Keeps(const IncomingRequest& request) const;
  void Keep(IncomingRequest request, std::unique_ptr<BulkTarget> bulk, Responder responder);
  // A push has been applied, counted or contributed; or a part of one, which isn't whole with it.
  void Applied(const PushPullRequest& request, bool whole = true);
  void Disconnect(ConnectionId connection);
  // Everything goes on: values were replaced.
  void Release();
  // Training has ended: what isn't applied or counted by now never is, and nobody waits for it.
  void End();

 private:
  struct Kept {
    IncomingRequest request;
    std::unique_ptr<BulkTarget> bulk;
    Responder responder;
  };
  // incarnation, number
  using HoldId = std::pair<uint64_t, uint64_t>;

  uint64_t Begun(int client) const;
  // Including what a process of its host applies itself.
  uint64_t Newest(int client) const;
  void LetIn(int client, uint64_t through);
  bool Reached(int client) const;
  // The time is over, and more is worth waiting for: the rest of an update whose sender is alive.
  bool WaitsForParts() const;
  void RunOut();
  MarkReply MakeReply() const;
  void LookLater();
  void Look();
  // As if nobody had to be held: a planted bug.
  bool GoesOn() const;
  void HandOn();

  EventLoop& loop_;
  const ClientTable& clients_;
  Gates& gates_;
  PartSaver& saver_;
  const Options options_;
  const Handle handle_;
  // By client: the highest number that a stripe had when this process began; from which on something may be under way
  // (ClientRecord::settled); and, on ps 0, of the update that is applied and not counted, 0 if there is none.
  std::vector<uint64_t> recovered_;
  std::vector<uint64_t> begun_;  // … and the highest number of which this process has seen a part
  std::vector<uint64_t> settled_;
  std::vector<uint64_t> uncounted_;

  HoldId newest_{};  // hold that was asked for
  absl::Time held_since_;
  uint32_t holder_ = 0;   // the chief
  bool patient_ = false;  // of the mark that is waited for: see MarkRequest
  HoldId marked_{};       // hold whose mark was set last
  MarkReply mark_reply_;
  bool ended_ = false;
  std::shared_ptr<Arena> arena_;  // held; null: everything goes on
  std::vector<uint64_t> through_;
  std::optional<uint64_t> round_;     // of the mark that is waited for
  std::optional<Responder> marking_;  // the mark was asked for
  std::vector<Kept> kept_;            // or about to be handed on
  std::optional<EventLoop::TimerId> timer_;
  std::optional<EventLoop::TimerId> look_timer_;
  Lifetime lifetime_;  // what is posted may outlive this
};

}  // namespace muster
