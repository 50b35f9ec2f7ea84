// A ps's side of a checkpoint's cut: holds updates back while the chief finds out how far all ps have come, lets in
// those that must be inside, sets the mark, and releases the rest (docs/store/checkpoints.md).
// It also releases them after a time of its own, so that a chief that dies meanwhile stops nobody for long. A ps that
// is cut off from the other hosts holds updates back by the same means. In memory only. Lives on the store's event
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
  // How long a hold lasts without its mark. Two round trips and the rest of a push take much less, and nobody should
  // notice a chief's death.
  static constexpr absl::Duration kLimit = absl::Seconds(2);

  // The limit when it waits for the rest of updates that come in parts, whose senders are still computing them.
  static constexpr absl::Duration kLongestWait = absl::Seconds(30);

  // How long a mark waits, once training has ended, for updates that processes on the ps's host have begun.
  static constexpr absl::Duration kLimitAtEnd = absl::Seconds(1);

  // How often a mark looks for updates that processes on the ps's host apply themselves.
  static constexpr absl::Duration kCheckAfter = absl::Microseconds(500);

  using Handle = std::function<void(IncomingRequest, std::unique_ptr<BulkTarget>, Responder)>;
  struct Options {
    bool lead = false;
    ArenaProbe* probe = nullptr;  // for tests
    // ps 0: returns the work queue's state of an arena whose CountLock is held.
    std::function<std::string(Arena&)> save_work = [](Arena&) { return std::string(); };
  };
  // All must outlive it. `handle` takes what was kept back.
  CutFollower(EventLoop& loop, const ClientTable& clients, Gates& gates, PartSaver& saver, const Options& options,
              Handle handle);
  ~CutFollower();

  // Takes over the memory of an earlier life of this ps.
  void Recover(Arena& arena);
  // A new life of the client begins, or all values are replaced: nothing that it has begun is under way any more.
  // `highest` is its highest number that any stripe has seen.
  void ForgetBegun(Arena& arena, int client, uint64_t highest);

  // The sender must be the chief, and there must be a model.
  void Hold(const HoldRequest& request, std::shared_ptr<Arena> arena, Responder responder);
  void Mark(const MarkRequest& request, Responder responder);
  // Whether the last mark was that of the hold with this number.
  bool Marked(const Stamp& chief, uint64_t hold) const { return HoldId{chief.incarnation, hold} == marked_; }

  // Whether a request must wait; if so, give it to Keep.
  bool IsHeld(const IncomingRequest& request) const;
  void KeepBack(IncomingRequest request, std::unique_ptr<BulkTarget> bulk, Responder responder);
  // A push was applied, counted or contributed; not `whole`: a part of one that doesn't complete it.
  void Applied(const PushPullRequest& request, bool whole = true);
  void Disconnect(ConnectionId connection);
  // Ends the hold because values were replaced.
  void Release();
  // Holds all updates back for as long as this ps is cut off (CutOffWatch): those that are under way end, none begins,
  // and no checkpoint is cut. False: training has ended. Ends with EndCutOff, and as every hold with Release and End.
  bool BeginCutOff(std::shared_ptr<Arena> arena);
  void EndCutOff();
  bool is_cut_off() const { return cut_off_; }
  // Training has ended: an update that isn't applied or counted by now never is, and nobody waits for it. The exception
  // is an update that a process on the ps's host has begun to apply itself: it ends within moments.
  void End();

 private:
  struct Kept {
    IncomingRequest request;
    std::unique_ptr<BulkTarget> bulk;
    Responder responder;
  };
  // incarnation, number
  using HoldId = std::pair<uint64_t, uint64_t>;

  // Begins a hold: keeps back what hasn't begun.
  void HoldAll(std::shared_ptr<Arena> arena);
  uint64_t Begun(int client) const;
  // Includes updates that a process on the ps's host applies itself.
  uint64_t Newest(int client) const;
  void LetIn(int client, uint64_t through);
  bool Reached(int client) const;
  // Whether a process on the ps's host is about to finish an update that the mark includes.
  bool DirectIsUnderWay(int client) const;
  // Whether, at the end of the time limit, it is worth waiting on: for the rest of an update whose sender is alive.
  bool WaitsForParts() const;
  void RunOut();
  MarkReply MakeReply() const;
  void CheckLater();
  void Check();
  // Whether nothing is held; a planted bug can force that.
  bool GoesOn() const;
  void HandOn();

  EventLoop& loop_;
  const ClientTable& clients_;
  Gates& gates_;
  PartSaver& saver_;
  const Options options_;
  const Handle handle_;
  // By client: the highest number that a stripe had when this process began; the number from which on something may be
  // under way (ClientRecord::settled); on ps 0, the update that is applied but not counted, 0 if none.
  std::vector<uint64_t> recovered_;
  std::vector<uint64_t> begun_;  // the highest number of which this process has seen a part
  std::vector<uint64_t> settled_;
  std::vector<uint64_t> uncounted_;
  // By client: the last update that was counted when the hold began.
  std::vector<uint64_t> counted_;

  HoldId newest_{};  // the newest hold
  absl::Time held_since_;
  uint32_t holder_ = 0;   // the chief
  bool patient_ = false;  // of the awaited mark: see MarkRequest
  HoldId marked_{};       // hold whose mark was set last
  MarkReply mark_reply_;
  bool ended_ = false;
  bool cut_off_ = false;          // the hold is for that
  std::shared_ptr<Arena> arena_;  // held; null: no hold
  std::vector<uint64_t> through_;
  std::optional<uint64_t> round_;     // of the awaited mark
  std::optional<Responder> marking_;  // set while a mark is awaited
  std::vector<Kept> kept_;            // held back, or about to be handed on
  std::optional<EventLoop::TimerId> timer_;
  std::optional<EventLoop::TimerId> check_timer_;
  Lifetime lifetime_;  // what is posted may outlive this
};

}  // namespace muster
