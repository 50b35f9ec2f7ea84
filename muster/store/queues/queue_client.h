// One caller of one queue on a ps, with its own lane (docs/queues.md). Sends a request again under its number until it
// is answered; an unanswered call ends at the caller's deadline, or when the ps has been silent for `patience`.
//
// Lives on the transport's EventLoop; used by the thread that drives it. For several threads, see queue_handle.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/bytes.h"
#include "muster/store/messages/incarnation.h"
#include "muster/store/messages/messages.h"
#include "muster/store/queues/queue_spec.h"
#include "muster/transport/transport.h"

namespace muster {

struct QueueClientOptions {
  std::string task;         // the calling task: "worker:1"
  std::string ps = "ps:0";  // the called ps, for messages
  std::function<uint64_t()> new_lane = NewIncarnation;
  // How long the ps may be silent; one second longer for each MiB of a call.
  absl::Duration patience = absl::Seconds(60);
  // Checked while a call waits: true ends the call with Cancelled.
  std::function<bool()> stop_requested = [] { return false; };
};

// Elements from a queue: all rows of component c, after those of the components before it.
struct QueueBatch {
  uint64_t elements = 0;
  std::vector<std::byte> bytes;

  // [elements, shape…] of one component; points into `bytes`.
  ByteSpan Component(const QueueSpec& spec, size_t component) const;
};

// Errors of all calls, which name the queue, the ps and its address:
//   DeadlineExceeded  not done by then. If it says that the ps is silent, an enqueue may still have been done
//   Unavailable       the ps has been gone for longer than `patience`. An enqueue may still have been done
//   Aborted           the ps was restarted and has lost the queue with its elements; the next call opens it anew
//   Cancelled         the queue is closed (enqueue), training has ended, or stop_requested said so
//   OutOfRange        the queue is closed and has too few elements (dequeue)
//   InvalidArgument   the queue was opened with another spec first; an element or a count that doesn't fit
class QueueClient {
 public:
  // `transport` must outlive it. `spec` must be valid.
  QueueClient(Transport& transport, std::string address, QueueSpec spec, QueueClientOptions options);

  // Opens the queue; otherwise the first call does.
  [[nodiscard]] absl::Status Open(absl::Time deadline);
  // `element`: the bytes of each component, borrowed for the call.
  [[nodiscard]] absl::Status Enqueue(const Segments& element, absl::Time deadline);
  // `small_batch`: fewer elements will do once the queue is closed, but at least one.
  absl::StatusOr<QueueBatch> Dequeue(uint64_t count, bool small_batch, absl::Time deadline);
  // On a queue that is already closed it only cancels. Goes on when a stop is requested.
  [[nodiscard]] absl::Status Close(bool cancel_pending, absl::Time deadline);
  absl::StatusOr<QueueReply> Size(absl::Time deadline);

  // Whether the answer to a dequeue isn't known: its elements come with the next dequeue of the same kind, and are lost
  // with any other call except Size.
  bool owed() const { return owed_.has_value(); }
  bool Owes(uint64_t count, bool small_batch) const {
    return owed_ && owed_->count == count && owed_->small_batch == small_batch;
  }
  const QueueSpec& spec() const { return spec_; }

 private:
  struct Call {
    StoreMethod method{};
    std::function<std::string(absl::Duration left)> control;
    Segments bulk;
    MutableSegments into;
    // A requested stop ends it; but not a close, by which others learn of the stop.
    bool stoppable() const { return method != StoreMethod::kCloseQueue && !before_close; }
    bool before_close = false;
    // How much longer an answer may take because this many bytes are on their way.
    absl::Duration MovingTime() const;
  };

  [[nodiscard]] absl::Status OpenLane(absl::Time deadline, bool before_close);
  absl::StatusOr<Reply> Do(StoreMethod method, QueueRequest message, absl::Time deadline, Segments bulk = {},
                           MutableSegments into = {});
  absl::StatusOr<QueueBatch> Fetch(const QueueRequest& message, absl::Time deadline);
  absl::StatusOr<Reply> Ask(const Call& call, absl::Time deadline);
  // OK: wait on.
  absl::Status CheckCall(const Call& call, absl::Time deadline) const;
  void AskWhetherItIsThere();
  absl::Status Named(const absl::Status& status) const;

  EventLoop& loop_;
  Transport& transport_;
  const std::string address_;
  const QueueSpec spec_;
  const QueueClientOptions options_;
  uint64_t lane_ = 0;  // 0: not opened
  uint64_t sequence_ = 0;
  std::optional<QueueRequest> owed_;
  bool settled_ = true;               // the ps answered the last call, whatever it said
  absl::Time heard_;                  // from the ps, in this call
  bool asking_ = false;               // whether the ps is there
  std::unique_ptr<Channel> channel_;  // last: its destructor calls back
};

}  // namespace muster
