// muster's transport between the processes of a job, on one host or many, over TCP. docs/wire_format.md specifies the
// bytes. If both ends are on one host, a connection moves to shared memory automatically (docs/shared_memory.md),
// unless TcpOptions::shared_memory forbids it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "muster/transport/io/tcp_event_loop.h"
#include "muster/transport/tcp/tcp_options.h"
#include "muster/transport/transport.h"

namespace muster {

class TcpTransport final : public Transport {
 public:
  // `loop` must outlive the transport, its channels and its listeners.
  explicit TcpTransport(TcpEventLoop& loop, JobToken token = {}, TcpOptions options = {});

  EventLoop& loop() override { return loop_; }
  absl::StatusOr<std::unique_ptr<Listener>> Listen(const std::string& address, RequestHandler& handler) override;
  std::unique_ptr<Channel> Connect(const std::string& address) override;

 private:
  HandshakeIdentity identity() const;

  TcpEventLoop& loop_;
  const JobToken token_;
  const TcpOptions options_;
};

}  // namespace muster
