// Requests to one peer: a small control message and bulk bytes each way. Bulk is gathered from and scattered into the
// caller's memory. Implementations: tcp/ (which moves to shm/ within a host), loopback/ (in one process) and
// simulated/, which is loopback/ over a network that takes time and fails. A channel lives on an EventLoop and is used
// on that loop's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/bytes.h"
#include "muster/transport/event_loop.h"

namespace muster {

struct Request {
  uint16_t method = 0;
  std::string control;
  Segments bulk;         // borrowed until the callback has been called
  MutableSegments into;  // receives the reply's bulk, in order; borrowed likewise. A longer reply is DataLoss
  absl::Time deadline = absl::InfiniteFuture();
};

struct Reply {
  std::string control;
  size_t bulk_bytes = 0;  // how much of `into` was filled
  // When the last byte of the request had been sent, and when the first byte of the reply arrived; MonotonicNanos. 0:
  // this transport doesn't record it.
  int64_t sent_at = 0;
  int64_t began_at = 0;
};

// Called exactly once, on the loop, never from inside Call. Errors:
//   DeadlineExceeded   the deadline passed; the peer may or may not have carried out the request
//   Unavailable        the connection broke or couldn't be made; likewise. Retry with the same sequence number
//   Cancelled          by Cancel, or because the channel was destroyed
//   PermissionDenied   the peer refuses our token, or serves another job
//   FailedPrecondition the peer speaks another protocol version
//   anything else      the peer's own answer
// Every message names the peer's address. The callback may take the reply, or leave other memory in its place.
using ReplyCallback = absl::AnyInvocable<void(absl::StatusOr<Reply>&)>;

class Channel {
 public:
  enum class CallId : uint64_t {};

  virtual ~Channel() = default;  // ends calls in flight with Cancelled (their callbacks are called)

  // Sends `request`, which is copied (the memory that its segments point to is borrowed). Replies may arrive in another
  // order than the requests. Without a connection, the request waits for one until its deadline, while the channel
  // reconnects automatically with bounded, jittered back-off. When a connection breaks, the calls in flight on it end
  // with Unavailable (they are not sent again: only the caller knows whether that is safe).
  virtual CallId Call(const Request& request, ReplyCallback done) = 0;

  // Ends the call with Cancelled if it is still in flight; its memory is free once the callback has been called.
  virtual void Cancel(CallId call) = 0;

  // Returns the address that the channel was made for.
  virtual const std::string& peer() const = 0;

  // Why calls wait for a connection: how the last attempt failed, or how far the present one is ("connection refused").
  // Empty: there is a connection.
  virtual std::string trouble() const = 0;

  struct Stats {
    uint64_t bytes_sent = 0;
    uint64_t bytes_received = 0;
    uint64_t calls = 0;
    uint64_t connects = 0;  // established connections, including the first
    // The kind of the present connection: "tcp", "shared memory" or "loopback"; empty without one.
    const char* link = "";
  };
  virtual Stats stats() const = 0;  // callable from any thread, except on simulated channels
};

}  // namespace muster
