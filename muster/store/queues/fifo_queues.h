// The queues that a ps keeps (docs/queues.md): bounded, first in first out, opened by name. Requests are answered at
// once, or when there is room or there are elements; each request has its effect once, however often it comes.
// TensorFlow: core/kernels/fifo_queue.cc. A state machine without a clock: the caller passes the time, and calls Expire
// when NextDeadline has come. In memory only. Lives on the store's event loop.
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
  uint64_t bytes = uint64_t{1} << 30;  // limit for all queues together when they are full
  static constexpr size_t kMaxQueues = 256;
  static constexpr size_t kMaxLanes = 1024;
  // How long a lane without a connection is remembered.
  static constexpr absl::Duration kLaneMemory = absl::Minutes(10);
  // A lane that waits but was silent for this long has lost its host without a broken connection: it must not hold up
  // those behind it. Its client asks every 2 s (queue_client.h).
  static constexpr absl::Duration kLaneSilence = absl::Minutes(1);
};

class FifoQueues {
 public:
  explicit FifoQueues(FifoQueuesOptions options) : options_(std::move(options)) {}

  void Open(ConnectionId connection, const OpenQueueRequest& message, absl::Time now, Responder responder);
  // Call it before the element's memory is allocated. Aborted: no such lane. InvalidArgument: an element of another
  // size.
  [[nodiscard]] absl::Status CheckElement(const QueueRequest& message, size_t bytes) const;
  // `element` is copied.
  void Enqueue(ConnectionId connection, const QueueRequest& message, ByteSpan element, absl::Time now,
               Responder responder);
  void Dequeue(ConnectionId connection, const QueueRequest& message, absl::Time now, Responder responder);
  void Close(ConnectionId connection, const QueueRequest& message, absl::Time now, Responder responder);
  void Size(const QueueRequest& message, absl::Time now, Responder responder);

  // Requests that waited on the connection are sent again, or not at all.
  void Disconnect(ConnectionId connection, absl::Time now);
  // Answers the requests whose deadline has come, and removes those of silent lanes from the lines.
  void Expire(absl::Time now);
  absl::Time NextDeadline() const;  // InfiniteFuture: no request has one
  // Fails every request that waits.
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
  // A waiting request.
  struct Attempt {
    uint64_t lane = 0;
    uint64_t sequence = 0;
    absl::Time since;
    absl::Time deadline;
    Bytes element;       // for an enqueue
    uint64_t count = 0;  // for a dequeue
    bool small_batch = false;
    std::vector<Bytes> taken;
    std::vector<Asker> askers;  // several: it was asked again, and it isn't known which connection is listened to
  };
  using Line = std::list<Attempt>;
  struct Queue {
    QueueSpec spec;
    uint64_t element_bytes = 0;
    bool closed = false;  // no enqueue is accepted any more; those in line still are
    std::deque<Bytes> elements;
    Line enqueues;
    Line dequeues;
    uint64_t enqueued = 0;
    uint64_t dequeued = 0;
  };
  // The result of a request.
  struct Outcome {
    uint64_t sequence = 0;  // 0: no request
    absl::Status status;
    std::string control;
    Bytes bulk;
  };
  struct Lane {
    std::string task;
    Queue* queue = nullptr;  // in queues_, whose entries are never removed
    std::set<ConnectionId> connections;
    absl::Time disconnected_at;  // meaningful when connections is empty
    absl::Time heard;            // when its last request of any kind came
    uint64_t newest = 0;         // the highest number seen
    Outcome outcome;             // of the newest, once it is finished
  };

  [[nodiscard]] absl::Status CheckOpen(const OpenQueueRequest& message, const QueueSpec& spec) const;
  absl::Status UnknownLane() const;
  void ForgetLanes(absl::Time now);
  // Null: `responder` has been taken care of. Otherwise the request is new, and now the lane's newest.
  Lane* Begin(ConnectionId connection, const QueueRequest& message, absl::Time now, Responder& responder);
  // Appends a request to a line and serves the lines as far as possible.
  void Wait(Lane& lane, Line& line, Attempt attempt, const QueueRequest& message, absl::Time now, Asker asker);
  Attempt* Waiting(Lane& lane, uint64_t lane_id) const;
  // Removes the attempts for which `gone` returns true; elements that they had taken are put back.
  static void Erase(Queue& queue, absl::FunctionRef<bool(Attempt& attempt)> gone);
  // When an attempt's lane counts as gone if it stays silent.
  absl::Time SilentAt(const Attempt& attempt) const;
  void GiveUp(Lane& lane, uint64_t lane_id);
  void Flush(Queue& queue);
  bool Serve(Queue& queue, Attempt& attempt);  // true: something has changed; a finished attempt has no askers
  void Finish(Queue& queue, Attempt& attempt, absl::Status status, uint64_t elements = 0, Bytes bulk = nullptr);
  static void PutBack(Queue& queue, Attempt& attempt);
  static Bytes Batch(const Queue& queue, const std::vector<Bytes>& elements);
  static void Answer(const Outcome& outcome, Responder responder);

  const FifoQueuesOptions options_;
  std::map<std::string, Queue> queues_;
  std::map<uint64_t, Lane> lanes_;
};

}  // namespace muster
