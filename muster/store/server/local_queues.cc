#include "muster/store/server/local_queues.h"

#include "muster/base/status_macros.h"
#include "muster/transport/choice/transport_choice.h"

namespace muster {

LocalQueues::LocalQueues(const JobToken& token, const std::string& task)
    : transport_(MakeTransport(TransportChoice::kTcp, loop_, token)),
      // Nobody joins it, and it is never abandoned.
      service_(loop_,
               StoreOptions{.task = task,
                            .lease = {.lease = absl::InfiniteDuration(), .abandoned_after = absl::InfiniteDuration()},
                            .files = &PosixFileSystem(),
                            .background = [](absl::AnyInvocable<void()> work) { work(); }}) {}

absl::StatusOr<std::unique_ptr<LocalQueues>> LocalQueues::Start(const JobToken& token, const std::string& task) {
  auto queues = std::unique_ptr<LocalQueues>(new LocalQueues(token, task));
  ASSIGN_OR_RETURN(queues->listener_, queues->transport_->Listen("127.0.0.1:0", queues->service_));
  queues->address_ = queues->listener_->address();
  queues->thread_ = std::thread(
      [self = queues.get()] { self->loop_.RunUntil([self] { return self->stopping_; }, absl::InfiniteFuture()); });
  return queues;
}

LocalQueues::~LocalQueues() {
  if (!thread_.joinable()) return;
  loop_.Post([this] { stopping_ = true; });
  thread_.join();
}

}  // namespace muster
