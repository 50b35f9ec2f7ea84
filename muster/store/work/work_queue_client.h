// A worker's access to the work queue on ps 0 (docs/work_queue.md). It asks for a unit again, under the same number,
// until an answer comes; while no unit is available it asks now and then.
//
// Take runs on the transport's EventLoop, on the one thread that drives it; the others may be called from any thread.
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
  std::string ps = "ps:0";  // the called ps, for messages
  // How long the ps may be silent.
  absl::Duration patience = absl::Seconds(60);
  // Checked while Take waits: true ends it with Cancelled.
  std::function<bool()> stop_requested = [] { return false; };
};

class WorkQueueClient final : public WorkSource {
 public:
  // `transport` must outlive it. `tally` is that of the process's StoreClient.
  WorkQueueClient(Transport& transport, std::string address, WorkSpec spec, std::shared_ptr<WorkTally> tally,
                  WorkQueueClientOptions options);

  // Waits for the process's session, which makes the process known to the ps, and for the chief's, which makes the
  // model ready. Returns nothing also when training has ended. Errors: Aborted, the session must join again because the
  // ps was restarted without its memory, which only this call can find out; Unavailable, the ps has been gone for
  // longer than `patience`; Cancelled; InvalidArgument, other workers share out something else; ResourceExhausted, too
  // many units in hand; FailedPrecondition, a newer process is this task.
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
