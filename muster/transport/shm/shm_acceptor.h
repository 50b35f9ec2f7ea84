// Where a listener's clients on its host get the memory for their connections: a unix socket in the abstract namespace.
// A client with a nonce that was given out over TCP and is still unused gets memory (docs/shared_memory.md, section
// 1). Lives on its loop; not thread-safe. Internal to the transport.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/transport/handshake.h"
#include "muster/transport/io/acceptor.h"
#include "muster/transport/io/byte_stream.h"
#include "muster/transport/io/shared_memory_options.h"
#include "muster/transport/io/socket.h"
#include "muster/transport/io/tcp_event_loop.h"

namespace muster {

class ShmAcceptor final {
 public:
  // `loop` must outlive it. Unavailable: the system provides no socket. A client that takes longer than `patience` is
  // disconnected.
  static absl::StatusOr<std::unique_ptr<ShmAcceptor>> Open(TcpEventLoop& loop, const SharedMemoryOptions& options,
                                                           absl::Duration patience);
  ~ShmAcceptor();

  // The socket's name.
  const std::string& name() const { return name_; }

  // Called on the loop, at most once, with the stream that carries the client's frames from then on.
  using Callback = absl::AnyInvocable<void(std::unique_ptr<ByteStream>)>;
  // Returns a nonce for one client.
  HandshakeNonce Expect(Callback moved);
  // Withdraws a nonce. Ignores an unknown one.
  void Forget(const HandshakeNonce& nonce) { expected_.erase(nonce); }

 private:
  class Handover;
  struct Expected {
    Callback moved;
    bool shown = false;  // a client has shown the nonce: no other client gets memory for it
  };

  ShmAcceptor(TcpEventLoop& loop, const SharedMemoryOptions& options, absl::Duration patience, std::string name,
              Socket socket);
  void OnAccepted(Socket client);
  void End(Handover* handover);

  TcpEventLoop& loop_;
  const SharedMemoryOptions options_;
  const absl::Duration patience_;
  const std::string name_;
  const Socket socket_;
  Acceptor acceptor_;
  absl::flat_hash_map<HandshakeNonce, Expected> expected_;
  absl::flat_hash_map<Handover*, std::unique_ptr<Handover>> handovers_;
};

}  // namespace muster
