// A client's way to the memory that the server of its connection offers: the other half of ShmPort
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

// Where the server says that memory is to be had: the control part of a door frame.
struct ShmDoor {
  HandshakeNonce nonce{};
  std::string socket;

  std::string Encode() const;
  static std::optional<ShmDoor> Decode(const std::string& control);
};

class ShmVisit final : private Poller::Watched {
 public:
  // The stream on which this side's frames go from now on; or why there is none: Unavailable, the server isn't on this
  // host, or takes too long; PermissionDenied, it runs as another user; FailedPrecondition, what it gave isn't right.
  using Callback = absl::AnyInvocable<void(absl::StatusOr<std::unique_ptr<ByteStream>>)>;

  // Calls back once, from the loop, not from inside here. `loop` must outlive it.
  ShmVisit(TcpEventLoop& loop, const ShmDoor& door, const SharedMemoryOptions& options, absl::Duration patience,
           Callback done);
  ~ShmVisit() override;  // gives it up; the callback isn't called any more

 private:
  void OnReady(bool readable, bool writable, bool broken) override;
  absl::Status Knock(const std::string& socket_name);
  absl::StatusOr<std::unique_ptr<ByteStream>> Enter();
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
