// A client's request for the memory that its connection's server offers: the counterpart of ShmAcceptor
// (docs/shared_memory.md, section 1). Lives on its loop; not thread-safe. Internal to the transport.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/transport/handshake.h"
#include "muster/transport/io/byte_stream.h"
#include "muster/transport/io/poller.h"
#include "muster/transport/io/shared_memory_options.h"
#include "muster/transport/io/socket.h"
#include "muster/transport/io/tcp_event_loop.h"

namespace muster {

// Where the server offers the memory: the control part of a kShmAddress frame.
struct ShmAddress {
  HandshakeNonce nonce{};
  std::string socket;

  std::string Encode() const;
  static std::optional<ShmAddress> Decode(const std::string& control);
};

class ShmConnector final : private Poller::Watched {
 public:
  // Receives the stream that carries this side's frames from now on, or the reason why not. Unavailable: the server
  // isn't on this host, or takes too long. PermissionDenied: it runs as another user. FailedPrecondition: what it
  // passed is invalid.
  using Callback = absl::AnyInvocable<void(absl::StatusOr<std::unique_ptr<ByteStream>>)>;

  // Calls `done` once, from the loop, never from inside the constructor. `loop` must outlive it.
  ShmConnector(TcpEventLoop& loop, const ShmAddress& address, const SharedMemoryOptions& options,
               absl::Duration patience, Callback done);
  ~ShmConnector() override;  // gives up; doesn't call the callback any more

 private:
  void OnReady(bool readable, bool writable, bool broken) override;
  absl::Status Connect(const std::string& socket_name);
  absl::StatusOr<std::unique_ptr<ByteStream>> Attach();
  void End(absl::StatusOr<std::unique_ptr<ByteStream>> result);

  TcpEventLoop& loop_;
  const HandshakeNonce nonce_;
  const SharedMemoryOptions options_;
  Callback done_;
  Socket socket_;
  std::optional<Poller::Id> watch_;
  EventLoop::TimerId timer_{};
};

}  // namespace muster
