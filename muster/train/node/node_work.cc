// The part of Node that opens the work queue.
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/store/work/local_work.h"
#include "muster/store/work/work_queue_client.h"
#include "muster/train/node/node.h"
#include "muster/transport/choice/transport_choice.h"
#include "muster/transport/io/tcp_event_loop.h"

namespace muster {
namespace {

// A client with a loop and a connection of its own, for the thread that prepares batches.
class RemoteWork final : public WorkSource {
 public:
  RemoteWork(const JobToken& token, const std::string& address, WorkSpec spec, std::shared_ptr<WorkTally> tally,
             WorkQueueClientOptions options)
      // The requests are so small that shared memory doesn't pay.
      : transport_(MakeTransport(TransportChoice::kTcp, loop_, token)),
        client_(*transport_, address, std::move(spec), std::move(tally), std::move(options)) {}

  absl::StatusOr<std::optional<WorkUnit>> Take() override { return client_.Take(); }
  bool Begin() override { return client_.Begin(); }
  [[nodiscard]] absl::Status Done() override { return client_.Done(); }
  void Stop() override { client_.Stop(); }

 private:
  TcpEventLoop loop_;
  std::unique_ptr<Transport> transport_;
  WorkQueueClient client_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<WorkSource>> Node::OpenWorkQueue(const std::string& name,
                                                                const WorkQueueOptions& options) {
  const WorkSpec spec{name, options.rows, options.rows_per_unit, options.epochs};
  RETURN_IF_ERROR(ValidateWork(spec));
  const std::string self = task_.task().ToString();
  if (client_ == nullptr)
    return absl::FailedPreconditionError(
        absl::StrCat("work queue '", name, "': ", self, " does not train, and takes no part of the work"));
  if (HasOwnCopy())
    return WrongConfigurationError(absl::StrCat(
        "work queue '", name,
        "' needs ps 0, which divides the work and knows who is alive, and this cluster has no ps: add a 'ps' "
        "job, or give each worker its part by Dataset::Shard"));
  if (tally_ != nullptr)
    return absl::FailedPreconditionError(
        absl::StrCat("work queue '", name, "': ", self, " has opened a work queue; a job has one"));
  tally_ = std::make_shared<WorkTally>();
  client_->work().Share(tally_);
  if (local_store_) return std::make_shared<LocalWork>(work_, tally_, spec);
  WorkQueueClientOptions client{.patience = options_.patience,
                                .stop_requested = [this] { return stop_signal_->raised(); }};
  return std::make_shared<RemoteWork>(options_.token, client_->addresses()[0], spec, tally_, std::move(client));
}

}  // namespace muster
