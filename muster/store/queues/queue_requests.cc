#include "muster/store/queues/queue_requests.h"

namespace muster {

QueueRequests::~QueueRequests() {
  if (timer_) loop_.CancelTimer(*timer_);
}

void QueueRequests::Handle(StoreMethod method, ConnectionId connection, const QueueRequest& message, ByteSpan bulk,
                           Responder responder) {
  const absl::Time now = loop_.Now();
  switch (method) {
    case StoreMethod::kEnqueue:
      queues_.Enqueue(connection, message, bulk, now, std::move(responder));
      break;
    case StoreMethod::kDequeue:
      queues_.Dequeue(connection, message, now, std::move(responder));
      break;
    case StoreMethod::kCloseQueue:
      queues_.Close(connection, message, now, std::move(responder));
      break;
    default:
      return queues_.Size(message, now, std::move(responder));
  }
  ScheduleExpiry();
}

void QueueRequests::Disconnect(ConnectionId connection) {
  queues_.Disconnect(connection, loop_.Now());
  ScheduleExpiry();
}

void QueueRequests::FailAll(const absl::Status& status) {
  queues_.FailAll(status);
  ScheduleExpiry();
}

void QueueRequests::ScheduleExpiry() {
  if (timer_) loop_.CancelTimer(*timer_);
  timer_.reset();
  const absl::Time next = queues_.NextDeadline();
  if (next == absl::InfiniteFuture()) return;
  timer_ = loop_.CallAt(next, [this] {
    timer_.reset();
    queues_.Expire(loop_.Now());
    ScheduleExpiry();
  });
}

void QueueRequests::Describe(const ClientTable& clients, std::vector<WaitingFor>& waiting) const {
  for (const FifoQueues::View& queue : queues_.Describe())
    for (const FifoQueues::Waiter& wait : queue.waiting)
      for (size_t i = 0; i < clients.clients().size(); ++i)
        if (clients.clients()[i].task == wait.task && waiting[i].what.empty()) waiting[i] = {wait.what, wait.since};
}

}  // namespace muster
