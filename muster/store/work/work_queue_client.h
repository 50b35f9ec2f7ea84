// A worker's end of the work queue on ps 0 (docs/work_queue.md). A unit is asked for again, under the same number,
// until an answer comes; while there is none to be had it is asked for every now and then.
//
// Take lives on the transport's EventLoop and is used by one thread, which drives it; the others may be called from
// any.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/data/work_source.h"
#include "muster/store/messages/messages.h"
#include "muster/store/work/work_tally.h"
#include "muster/transport/transport.h"

namespace muster {

struct WorkQueueClientOptions {
  std::string ps = "ps:0";  // whom, for messages
  // How long the ps may be silent.
  absl::Duration patience = absl::Seconds(60);
  // Asked while Take waits: true makes it end with Cancelled.
  std::function<bool()> stop_requested = [] { return false; };
};

class WorkQueueClient final : public WorkSource {
 public:
  // `transport` must outlive it. `tally` is the one that the process's StoreClient goes by.
  WorkQueueClient(Transport& transport, std::string address, WorkSpec spec, std::shared_ptr<WorkTally> tally,
                  WorkQueueClientOptions options);

  // Waits for the process's session, which makes it known to the ps, and for the chief's, which makes the model ready.
  // Nothing, too, when training has ended. Errors: Aborted, the session has to join again, as the ps was restarted
  // without its memory and nobody but this call can find out; Unavailable, the ps is gone for longer than `patience`;
  // Cancelled;
  // InvalidArgument, other workers share out something else; ResourceExhausted, too many in hand;
  // FailedPrecondition, a newer process is this task.
  absl::StatusOr<std::optional<WorkUnit>> Take() override;
  bool Begin() override { return tally_->Begin(); }
  [[nodiscard]] absl::Status Done() override;
  void Stop() override { stopped_ = true; }

 private:
  bool stopping() const { return stopped_ || options_.stop_requested(); }
  // False: it was stopped meanwhile.
  bool Pause();
  absl::StatusOr<TakeWorkReply> Ask(const TakeWorkRequest& request);
  absl::Status Named(const absl::Status& status) const;

  Transport& transport_;
  EventLoop& loop_;
  const std::string address_;
  const WorkSpec spec_;
  const std::shared_ptr<WorkTally> tally_;
  const WorkQueueClientOptions options_;
  std::unique_ptr<Channel> channel_;
  std::atomic<bool> stopped_ = false;
};

}  // namespace muster
