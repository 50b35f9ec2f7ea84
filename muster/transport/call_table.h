// The calls in flight on one channel: numbers them, watches their deadlines and calls their callbacks exactly once.
// What a channel needs whatever it sends its bytes over. Lives on the channel's loop; not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/lifetime.h"
#include "muster/transport/channel.h"
#include "muster/transport/event_loop.h"

namespace muster {

class CallTable {
 public:
  struct Call {
    Request request;
    ReplyCallback done;
    absl::Time started;
    bool sent = false;  // handed to a connection
  };

  // `expired(id)` is called on the loop for a call whose deadline has passed; it ends it with FinishLater. `loop` must
  // outlive this.
  CallTable(EventLoop& loop, absl::AnyInvocable<void(uint64_t)> expired);
  // Ends what is left with Cancelled, naming `peer`.
  ~CallTable();

  // 1, 2, 3, …
  uint64_t Add(const Request& request, ReplyCallback done);
  Call* Find(uint64_t id);  // null if it isn't in flight (any more); valid until the next Finish of the same id
  uint64_t last_id() const { return last_id_; }
  size_t size() const { return calls_.size(); }
  std::vector<uint64_t> Ids() const;  // in the order of the calls

  // Takes the call out and calls back at once. Nothing of the table is touched after: the callback may destroy it.
  // Returns the memory that the callback has left of the reply's control part.
  std::string Finish(uint64_t id, absl::StatusOr<Reply> result);
  // Takes the call out now and calls back from the loop, for use inside Call and Cancel.
  void FinishLater(uint64_t id, absl::StatusOr<Reply> result);
  // Takes them all out and calls back, while `this` lives.
  void FinishAll(const std::vector<uint64_t>& ids, const absl::Status& status);
  void set_peer(std::string peer) { peer_ = std::move(peer); }

 private:
  struct Ending {
    ReplyCallback done;
    absl::StatusOr<Reply> result;
  };

  ReplyCallback TakeOut(uint64_t id);
  void WatchDeadline(absl::Time deadline);
  void OnDeadline();
  void RunEndings();

  EventLoop& loop_;
  absl::AnyInvocable<void(uint64_t)> expired_;
  std::string peer_;
  uint64_t last_id_ = 0;
  absl::flat_hash_map<uint64_t, std::unique_ptr<Call>> calls_;
  std::vector<std::unique_ptr<Call>> spare_;  // used calls, so that the steady state allocates none
  std::deque<Ending> endings_;
  bool endings_posted_ = false;

  // One timer for all calls, at or before the earliest deadline: calls mostly end long before theirs, and the next
  // one's deadline is mostly later, so that a call costs no timer.
  absl::Time watched_ = absl::InfiniteFuture();
  EventLoop::TimerId watch_{};
  Lifetime lifetime_;  // callbacks may destroy this
};

// What ends calls that waited for a connection until their deadline.
absl::Status UnreachableError(const std::string& peer, absl::Duration waited, const std::string& reason);

}  // namespace muster
