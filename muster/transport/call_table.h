// The calls in flight on one channel: numbers them, watches their deadlines and calls their callbacks exactly once.
// Every kind of channel needs this, whatever carries its bytes. Lives on the channel's loop; not thread-safe.
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

  // Calls `expired(id)` on the loop for a call whose deadline has passed; `expired` must end it with FinishLater.
  // `loop` must outlive this.
  CallTable(EventLoop& loop, absl::AnyInvocable<void(uint64_t)> expired);
  // Ends the remaining calls with Cancelled, naming `peer`.
  ~CallTable();

  // Returns 1, 2, 3, …
  uint64_t Add(const Request& request, ReplyCallback done);
  Call* Find(uint64_t id);  // null if it isn't in flight; valid until the next Finish of the same id
  uint64_t last_id() const { return last_id_; }
  size_t size() const { return calls_.size(); }
  std::vector<uint64_t> Ids() const;  // in the order of the calls

  // Removes the call and runs its callback at once. Touches nothing of the table afterwards: the callback may destroy
  // it. Returns the memory of the reply's control part, unless the callback has taken it.
  std::string Finish(uint64_t id, absl::StatusOr<Reply> result);
  // Removes the call now and runs its callback from the loop, for use inside Call and Cancel.
  void FinishLater(uint64_t id, absl::StatusOr<Reply> result);
  // Removes these calls and runs their callbacks, as long as `this` exists.
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
  std::vector<std::unique_ptr<Call>> spare_;  // finished calls, reused so that the steady state allocates none
  std::deque<Ending> endings_;
  bool endings_posted_ = false;

  // One timer for all calls, set at or before the earliest deadline. Most calls end long before their deadlines, and
  // the next call's deadline is usually later, so that a call costs no timer.
  absl::Time watched_ = absl::InfiniteFuture();
  EventLoop::TimerId watch_{};
  Lifetime lifetime_;  // callbacks may destroy this
};

// The error for calls that waited for a connection until their deadline.
absl::Status UnreachableError(const std::string& peer, absl::Duration waited, const std::string& reason);

}  // namespace muster
