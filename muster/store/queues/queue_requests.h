// Takes requests about queues to FifoQueues and adds what those lack: decoding, the clock, and a timer for answers that
// are held back. Lives on the store's event loop.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "muster/store/gates/client_table.h"
#include "muster/store/gates/held_answer.h"
#include "muster/store/messages/store_methods.h"
#include "muster/store/queues/fifo_queues.h"
#include "muster/transport/event_loop.h"
#include "muster/transport/listener.h"

namespace muster {

class QueueRequests {
 public:
  // `loop` must outlive it.
  QueueRequests(EventLoop& loop, FifoQueuesOptions options) : loop_(loop), queues_(std::move(options)) {}
  ~QueueRequests();
  QueueRequests(const QueueRequests&) = delete;
  QueueRequests& operator=(const QueueRequests&) = delete;

  [[nodiscard]] absl::Status CheckElement(const QueueRequest& message, size_t bytes) const {
    return queues_.CheckElement(message, bytes);
  }
  void Open(ConnectionId connection, const OpenQueueRequest& message, Responder responder) {
    queues_.Open(connection, message, loop_.Now(), std::move(responder));
  }
  void Handle(StoreMethod method, ConnectionId connection, const QueueRequest& message, ByteSpan bulk,
              Responder responder);
  void Disconnect(ConnectionId connection);
  void FailAll(const absl::Status& status);

  std::vector<FifoQueues::View> Describe() const { return queues_.Describe(); }
  // Adds the clients that wait here and for nothing else.
  void Describe(const ClientTable& clients, std::vector<WaitingFor>& waiting) const;

 private:
  void ScheduleExpiry();

  EventLoop& loop_;
  FifoQueues queues_;
  std::optional<EventLoop::TimerId> timer_;
};

}  // namespace muster
