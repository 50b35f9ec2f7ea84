#include "muster/store/queues/queue_handle.h"

#include <utility>

#include "muster/base/status_macros.h"
#include "muster/transport/choice/transport_choice.h"
#include "muster/transport/io/tcp_event_loop.h"

namespace muster {
namespace {

bool OwesNothing(const QueueClient& client) { return !client.owed(); }

}  // namespace

struct QueueHandle::Lane {
  explicit Lane(const QueueHandle& handle)
      // An element is copied anyway, and each lane would cost both hosts a ring of memory.
      : transport(MakeTransport(TransportChoice::kTcp, loop, handle.token_)),
        client(*transport, handle.address_, handle.spec_, handle.options_) {}

  TcpEventLoop loop;
  std::unique_ptr<Transport> transport;
  QueueClient client;
};

QueueHandle::QueueHandle(JobToken token, std::string address, QueueSpec spec, QueueClientOptions options)
    : token_(std::move(token)), address_(std::move(address)), spec_(std::move(spec)), options_(std::move(options)) {}

QueueHandle::~QueueHandle() = default;

std::unique_ptr<QueueHandle::Lane> QueueHandle::Take(Owes owes) {
  {
    const MutexLock lock(mutex_);
    auto best = free_.end();
    for (auto lane = free_.begin(); lane != free_.end(); ++lane)
      if (owes((*lane)->client) || (best == free_.end() && !(*lane)->client.owed())) best = lane;
    if (best != free_.end()) {
      std::unique_ptr<Lane> lane = std::move(*best);
      free_.erase(best);
      return lane;
    }
  }
  return std::make_unique<Lane>(*this);
}

absl::Status QueueHandle::With(Owes owes, absl::Duration timeout,
                               absl::FunctionRef<absl::Status(QueueClient& client, absl::Time deadline)> call) {
  std::unique_ptr<Lane> lane = Take(owes);
  absl::Status status = call(lane->client, lane->loop.Now() + timeout);
  const MutexLock lock(mutex_);
  free_.push_back(std::move(lane));
  return status;
}

absl::Status QueueHandle::Open(absl::Duration timeout) {
  return With(OwesNothing, timeout, [](QueueClient& client, absl::Time deadline) { return client.Open(deadline); });
}

absl::Status QueueHandle::Enqueue(const Segments& element, absl::Duration timeout) {
  return With(OwesNothing, timeout,
              [&](QueueClient& client, absl::Time deadline) { return client.Enqueue(element, deadline); });
}

absl::StatusOr<QueueBatch> QueueHandle::Dequeue(uint64_t count, bool small_batch, absl::Duration timeout) {
  QueueBatch batch;
  const auto owes = [&](const QueueClient& client) { return client.Owes(count, small_batch); };
  RETURN_IF_ERROR(With(owes, timeout, [&](QueueClient& client, absl::Time deadline) -> absl::Status {
    ASSIGN_OR_RETURN(batch, client.Dequeue(count, small_batch, deadline));
    return absl::OkStatus();
  }));
  return batch;
}

absl::Status QueueHandle::Close(bool cancel_pending, absl::Duration timeout) {
  return With(OwesNothing, timeout,
              [&](QueueClient& client, absl::Time deadline) { return client.Close(cancel_pending, deadline); });
}

absl::StatusOr<QueueReply> QueueHandle::Size(absl::Duration timeout) {
  QueueReply reply;
  RETURN_IF_ERROR(With(OwesNothing, timeout, [&](QueueClient& client, absl::Time deadline) -> absl::Status {
    ASSIGN_OR_RETURN(reply, client.Size(deadline));
    return absl::OkStatus();
  }));
  return reply;
}

}  // namespace muster
