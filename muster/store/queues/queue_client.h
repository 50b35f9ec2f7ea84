// One caller of one queue on a ps: its lane (docs/queues.md). Requests are sent again under their number until they are
// answered; what is never answered ends at the caller's deadline, or when the ps has been silent for `patience`.
//
// Lives on the transport's EventLoop and is used by the thread that drives it. queue_handle.h is for several threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
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
  std::string task;         // who calls: "worker:1"
  std::string ps = "ps:0";  // whom, for messages
  std::function<uint64_t()> new_lane = NewIncarnation;
  // How long the ps may be silent; a second more for each MiB of a call.
  absl::Duration patience = absl::Seconds(60);
  // Asked while a call waits: true makes it end with Cancelled.
  std::function<bool()> stop_requested = [] { return false; };
};

// Elements out of a queue: of component c all rows, behind those of the components before it.
struct QueueBatch {
  uint64_t elements = 0;
  std::vector<std::byte> bytes;

  // [elements, shape…] of one component; points into `bytes`.
  ByteSpan Component(const QueueSpec& spec, size_t component) const;
};

// Errors of all calls; they name the queue, the ps and its address:
//   DeadlineExceeded  not done by then. If it says that the ps is silent: an enqueue may still have been done
//   Unavailable       the ps is gone, for longer than `patience`. Likewise
//   Aborted           the ps was restarted and has lost the queue, elements and all; the next call opens it anew
//   Cancelled         the queue is closed (enqueue), training has ended, or stop_requested said so
//   OutOfRange        the queue is closed and has too few elements (dequeue)
//   InvalidArgument   who opened the queue first said something else; an element or a count that doesn't fit
class QueueClient {
 public:
  // `transport` must outlive it. `spec` is valid.
  QueueClient(Transport& transport, std::string address, QueueSpec spec, QueueClientOptions options);

  // Done by the first call otherwise.
  [[nodiscard]] absl::Status Open(absl::Time deadline);
  // `element`: the bytes of each component, borrowed for the call.
  [[nodiscard]] absl::Status Enqueue(const Segments& element, absl::Time deadline);
  // `small_batch`: once the queue is closed fewer will do, if there is at least one.
  absl::StatusOr<QueueBatch> Dequeue(uint64_t count, bool small_batch, absl::Time deadline);
  // Of a queue that is closed already it only cancels. Goes on when a stop is requested.
  [[nodiscard]] absl::Status Close(bool cancel_pending, absl::Time deadline);
  absl::StatusOr<QueueReply> Size(absl::Time deadline);

  // A dequeue whose answer isn't known: its elements come with the next one of the same kind, and are lost with any
  // other call but Size.
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
    // A stop that is asked for ends it; not a close, by which others learn of the stop.
    bool stoppable() const { return method != StoreMethod::kCloseQueue && !before_close; }
    bool before_close = false;
    // How much longer than a word an answer may take, as this many bytes are on their way.
    absl::Duration MovingTime() const;
  };

  [[nodiscard]] absl::Status OpenLane(absl::Time deadline, bool before_close);
  absl::StatusOr<Reply> Do(StoreMethod method, QueueRequest message, absl::Time deadline, Segments bulk = {},
                           MutableSegments into = {});
  absl::StatusOr<QueueBatch> Fetch(const QueueRequest& message, absl::Time deadline);
  absl::StatusOr<Reply> Ask(const Call& call, absl::Time deadline);
  // OK: go on waiting.
  absl::Status Look(const Call& call, absl::Time deadline) const;
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
  bool settled_ = true;               // the last call was answered by the ps, whatever it said
  absl::Time heard_;                  // of the ps, in this call
  bool asking_ = false;               // whether it is there
  std::unique_ptr<Channel> channel_;  // last: its end calls back
};

}  // namespace muster
