// Accepts the connections of a listening socket, TCP's or a unix socket's, a few at a time, so that a full backlog is
// emptied quickly and yet doesn't keep the loop from the existing connections. If the process has no free descriptors,
// it tries again a little later. Lives on its loop; not thread-safe. Internal to the transport.
#pragma once

#include "absl/functional/any_invocable.h"
#include "muster/transport/event_loop.h"
#include "muster/transport/io/poller.h"
#include "muster/transport/io/socket.h"
#include "muster/transport/io/tcp_event_loop.h"

namespace muster {

class Acceptor final : private Poller::Watched {
 public:
  using Callback = absl::AnyInvocable<void(Socket)>;

  // `loop` must outlive this; `listening` must stay open as long, and must not block. Calls `accepted`, which may not
  // destroy this, on the loop for each connection.
  Acceptor(TcpEventLoop& loop, int listening, Callback accepted);
  ~Acceptor() override;
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

 private:
  void OnReady(bool readable, bool writable, bool broken) override;
  void WaitAWhile();

  TcpEventLoop& loop_;
  const int listening_;
  Callback accepted_;
  const Poller::Id watch_;
  EventLoop::TimerId again_{};
};

}  // namespace muster
