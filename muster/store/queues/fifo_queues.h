// The queues that a ps keeps (docs/queues.md): bounded, first in first out, opened by name. Requests in, answers out,
// at once or when there is room, or there are elements; each request has its effect once, however often it comes.
// TensorFlow: core/kernels/fifo_queue.cc. A state machine without a clock: the caller says what time it is, and asks it
// to look when NextDeadline has come. In memory only. Lives on the store's event loop.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/bytes.h"
#include "muster/store/messages/queue_messages.h"
#include "muster/store/queues/queue_spec.h"
#include "muster/transport/listener.h"

namespace muster {

struct FifoQueuesOptions {
  std::string task = "ps:0";           // for messages
  uint64_t bytes = uint64_t{1} << 30;  // that all queues may hold together when they are full
  static constexpr size_t kMaxQueues = 256;
  static constexpr size_t kMaxLanes = 1024;
  // How long a lane without a connection is remembered.
  static constexpr absl::Duration kLaneMemory = absl::Minutes(10);
  // A lane that waits and of which nothing has come for so long has lost its host, and no connection breaks: it must
  // not hold up those behind it. Its client asks every 2 s (queue_client.h).
  static constexpr absl::Duration kLaneSilence = absl::Minutes(1);
};

class FifoQueues {
 public:
  explicit FifoQueues(FifoQueuesOptions options) : options_(std::move(options)) {}

  void Open(ConnectionId connection, const OpenQueueRequest& message, absl::Time now, Responder responder);
  // Before the element's memory is allocated. Aborted: no such lane. InvalidArgument: an element of another size.
  [[nodiscard]] absl::Status CheckElement(const QueueRequest& message, size_t bytes) const;
  // `element` is copied.
  void Enqueue(ConnectionId connection, const QueueRequest& message, ByteSpan element, absl::Time now,
               Responder responder);
  void Dequeue(ConnectionId connection, const QueueRequest& message, absl::Time now, Responder responder);
  void Close(ConnectionId connection, const QueueRequest& message, absl::Time now, Responder responder);
  void Size(const QueueRequest& message, absl::Time now, Responder responder);

  // What waited on it is asked again, or not at all.
  void Disconnect(ConnectionId connection, absl::Time now);
  // Answers those who have waited for as long as they wanted to, and takes those out of the lines who have gone silent.
  void Expire(absl::Time now);
  absl::Time NextDeadline() const;  // InfiniteFuture: nobody's
  // Of all who wait.
  void FailAll(const absl::Status& status);

  struct Waiter {
    std::string task;
    std::string what;
    absl::Time since;
  };
  struct View {
    QueueSpec spec;
    uint64_t elements = 0;
    uint64_t element_bytes = 0;
    bool closed = false;
    uint64_t enqueued = 0;  // ever
    uint64_t dequeued = 0;
    std::vector<Waiter> waiting;
  };
  std::vector<View> Describe() const;

 private:
  using Bytes = std::shared_ptr<const std::vector<std::byte>>;
  struct Asker {
    ConnectionId connection{};
    Responder responder;
  };
  // A request that waits.
  struct Attempt {
    uint64_t lane = 0;
    uint64_t sequence = 0;
    absl::Time since;
    absl::Time deadline;
    Bytes element;       // of an enqueue
    uint64_t count = 0;  // of a dequeue
    bool small_batch = false;
    std::vector<Bytes> taken;
    std::vector<Asker> askers;  // several: it was asked again, and which connection is listened to isn't known
  };
  using Line = std::list<Attempt>;
  struct Queue {
    QueueSpec spec;
    uint64_t element_bytes = 0;
    bool closed = false;  // no enqueue is taken any more; those in line are let in
    std::deque<Bytes> elements;
    Line enqueues;
    Line dequeues;
    uint64_t enqueued = 0;
    uint64_t dequeued = 0;
  };
  // What came of a request.
  struct Outcome {
    uint64_t sequence = 0;  // 0: of none
    absl::Status status;
    std::string control;
    Bytes bulk;
  };
  struct Lane {
    std::string task;
    Queue* queue = nullptr;  // in queues_, from which nothing is ever taken
    std::set<ConnectionId> connections;
    absl::Time disconnected_at;  // meaningful when connections is empty
    absl::Time heard;            // when the last of its requests came, of whatever kind
    uint64_t newest = 0;         // the highest number seen
    Outcome outcome;             // of the newest, if it is settled
  };

  [[nodiscard]] absl::Status CheckOpen(const OpenQueueRequest& message, const QueueSpec& spec) const;
  absl::Status UnknownLane() const;
  void ForgetLanes(absl::Time now);
  // Null: `responder` has been taken care of. Otherwise the request is new, and the lane's newest.
  Lane* Begin(ConnectionId connection, const QueueRequest& message, absl::Time now, Responder& responder);
  // Puts a request at the end of a line and sees how far everybody comes.
  void Wait(Lane& lane, Line& line, Attempt attempt, const QueueRequest& message, absl::Time now, Asker asker);
  Attempt* Waiting(Lane& lane, uint64_t lane_id) const;
  // Takes those out of the lines that `gone` says yes to; what they had taken is there again.
  static void Erase(Queue& queue, absl::FunctionRef<bool(Attempt& attempt)> gone);
  // When an attempt's lane counts as gone if nothing more comes of it.
  absl::Time SilentAt(const Attempt& attempt) const;
  void GiveUp(Lane& lane, uint64_t lane_id);
  void Flush(Queue& queue);
  bool Serve(Queue& queue, Attempt& attempt);  // true: something has changed; it is settled when it has no askers
  void Settle(Queue& queue, Attempt& attempt, absl::Status status, uint64_t elements = 0, Bytes bulk = nullptr);
  static void PutBack(Queue& queue, Attempt& attempt);
  static Bytes Batch(const Queue& queue, const std::vector<Bytes>& elements);
  static void Answer(const Outcome& outcome, Responder responder);

  const FifoQueuesOptions options_;
  std::map<std::string, Queue> queues_;
  std::map<uint64_t, Lane> lanes_;
};

}  // namespace muster
