// The serving end: requests arrive at a RequestHandler; answers leave through a Responder, at once or much later.
// Everything here runs on the listener's EventLoop.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "muster/base/bytes.h"
#include "muster/transport/borrowed_bytes.h"

namespace muster {

enum class ConnectionId : uint64_t {};

struct IncomingRequest {
  ConnectionId connection{};
  uint16_t method = 0;
  std::string control;
  size_t bulk_bytes = 0;
  bool in_shared_memory = false;                 // the bulk is there: a BulkTarget may leave it there
  absl::Time deadline = absl::InfiniteFuture();  // when the client gives up
};

// Receives the bulk of one request. The handler destroys it after use, or the transport if the connection breaks before
// the last byte.
class BulkTarget {
 public:
  virtual ~BulkTarget() = default;
  // Segments of exactly IncomingRequest::bulk_bytes in total. They don't change during the target's life.
  virtual const MutableSegments& segments() const = 0;

  // For bulk in shared memory. True: the bulk stays there and isn't copied into segments(), which may then be empty.
  // ReceiveBorrowed receives it before Handle; it is complete only when Handle is called.
  virtual bool BorrowsBulk() const { return false; }
  virtual void ReceiveBorrowed(BorrowedBytes /*bulk*/) {}
};

// Answers one request, exactly once; destroying an unanswered one answers Internal. Movable. May outlive the connection
// and the listener: the answer is then dropped.
class Responder {
 public:
  // Takes the answers of one request or, told apart by their numbers, of many.
  class Sink {
   public:
    virtual ~Sink() = default;
    virtual MutableByteSpan Reserve(uint64_t /*request*/, size_t /*bytes*/) { return {}; }
    virtual void Send(uint64_t request, absl::Status status, absl::string_view control, absl::Span<const ByteSpan> bulk,
                      std::shared_ptr<const void> keep_alive) = 0;
  };

  explicit Responder(std::shared_ptr<Sink> sink, uint64_t request = 0) : sink_(std::move(sink)), request_(request) {}
  Responder(Responder&&) = default;
  Responder& operator=(Responder&&) = default;
  ~Responder() {
    if (sink_) Fail(absl::InternalError("the request was dropped without an answer"));
  }

  // Reserves memory of the transport for the answer's bulk: bulk sent from there, as one segment, isn't copied again.
  // Empty if none is available. Valid until Send or Fail; call once.
  MutableByteSpan Reserve(size_t bytes) { return sink_->Reserve(request_, bytes); }

  // Copies `control` and the list of segments. The memory that the segments point to must stay valid and unchanged
  // until `keep_alive` is released (after the last byte was handed to the kernel).
  void Send(absl::string_view control, absl::Span<const ByteSpan> bulk = {},
            std::shared_ptr<const void> keep_alive = nullptr) {
    std::exchange(sink_, nullptr)->Send(request_, absl::OkStatus(), control, bulk, std::move(keep_alive));
  }
  void Fail(absl::Status status) { std::exchange(sink_, nullptr)->Send(request_, std::move(status), {}, {}, nullptr); }

 private:
  std::shared_ptr<Sink> sink_;  // null once answered
  uint64_t request_ = 0;
};

class RequestHandler {
 public:
  virtual ~RequestHandler() = default;

  // A peer has passed the handshake. `peer` is its address, for messages.
  virtual void OnConnect(ConnectionId connection, const std::string& peer) = 0;

  // Called when the control part of a request with bulk has arrived: returns where the bulk must go. Nothing has been
  // allocated for it yet. An error is sent as the answer; the bulk is then read and discarded, and Handle isn't called.
  virtual absl::StatusOr<std::unique_ptr<BulkTarget>> PrepareBulk(const IncomingRequest& request) = 0;

  // Called when the whole request has arrived. `bulk` is null if it has none. A handler that keeps the request moves it
  // out.
  virtual void Handle(IncomingRequest& request, std::unique_ptr<BulkTarget> bulk, Responder responder) = 0;

  // Called when no more requests of this connection will come.
  virtual void OnDisconnect(ConnectionId connection) = 0;
};

class Listener {
 public:
  // Stops: closes every connection. Doesn't call the handler, and no call comes afterwards.
  virtual ~Listener() = default;

  // The address at which it can be reached, with the real port if port 0 was requested.
  virtual const std::string& address() const = 0;

  struct Stats {
    uint64_t connections = 0;                    // open now, handshake passed
    std::vector<ConnectionId> in_shared_memory;  // those of them that have moved from TCP to shared memory
    uint64_t accepted = 0;                       // in total, handshake passed
    uint64_t in_handshake = 0;                   // open now, handshake not yet passed
    uint64_t dropped_handshake = 0;  // no or wrong handshake: random bytes, too slow, wrong token, other version
    uint64_t dropped_for_room = 0;   // those of them that made room for newer ones
    uint64_t dropped_malformed = 0;  // after the handshake: an invalid frame, a length over the limit
    uint64_t requests = 0;
    uint64_t bytes_received = 0;
    uint64_t bytes_sent = 0;
  };
  virtual Stats stats() const = 0;
};

}  // namespace muster
