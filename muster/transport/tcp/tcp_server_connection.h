// One client of a TcpListener, over TCP or through shared memory: turns its frames into requests and answers into
// frames, and stops reading while too much is unanswered or unsent. Lives on the listener's loop; not thread-safe.
// Internal to tcp/.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "muster/transport/io/tcp_event_loop.h"
#include "muster/transport/listener.h"
#include "muster/transport/shm/shm_acceptor.h"
#include "muster/transport/tcp/tcp_connection.h"
#include "muster/transport/tcp/tcp_options.h"

namespace muster {

class TcpServerConnection final : public std::enable_shared_from_this<TcpServerConnection>,
                                  private TcpConnection::Owner {
 public:
  class Host {
   public:
    virtual ~Host() = default;
    virtual void OnPassed(ConnectionId id) = 0;  // the handshake
    // The connection has ended without Close; the host must release it.
    virtual void OnEnd(ConnectionId id, TcpConnection::Fault fault) = 0;
  };

  // `host`, `handler` and `port` must outlive it or call Close; `options` must outlive it. `port` gives clients on this
  // host shared memory; null: there is none.
  TcpServerConnection(TcpEventLoop& loop, const TcpOptions& options, RequestHandler& handler, Host& host,
                      ShmAcceptor* port, ConnectionId id, std::string peer);

  void Start(Socket socket, std::unique_ptr<Handshake> handshake);
  // Ends it silently.
  void Close();

  // Called by the responders. `extent`: where `bulk` has been written already; usually empty.
  void Answer(uint64_t id, absl::Status status, absl::string_view control, absl::Span<const ByteSpan> bulk,
              std::shared_ptr<const void> keep_alive, Extent extent = {});
  // Memory for the answer's bulk; see Responder::Reserve.
  Extent Reserve(size_t bytes);

  bool passed() const { return passed_; }
  bool in_shared_memory() const { return connection_->areas() != nullptr; }
  uint64_t requests() const { return requests_; }
  const TcpConnection& connection() const { return *connection_; }

 private:
  // A request that hasn't been answered.
  struct Unanswered {
    size_t control_bytes = 0;
    bool cancelled = false;
  };

  // TcpConnection::Owner
  void OnReady() override;
  absl::StatusOr<const MutableSegments*> OnFrame(const FrameHeader& header, std::string control) override;
  void OnFrameEnd() override;
  bool BorrowsBulk() override { return target_->BorrowsBulk(); }
  void OnBorrowed(BorrowedBytes bulk) override { target_->ReceiveBorrowed(std::move(bulk)); }
  void OnSent() override { PushBack(); }
  void OnClosed(const absl::Status& why, TcpConnection::Fault fault) override;

  absl::StatusOr<const MutableSegments*> BeginRequest(const FrameHeader& header, std::string control);
  void PushBack();
  void WithdrawOffer();

  TcpEventLoop& loop_;
  const TcpOptions& options_;
  RequestHandler& handler_;
  Host& host_;
  ShmAcceptor* port_;
  std::optional<HandshakeNonce> offered_nonce_;  // while the client may still ask for memory
  const ConnectionId id_;
  const std::string peer_;
  std::shared_ptr<TcpConnection> connection_;
  bool passed_ = false;
  bool closed_ = false;  // by the host
  uint64_t requests_ = 0;

  std::shared_ptr<Responder::Sink> sink_;  // shared by all its responders
  uint64_t last_request_ = 0;
  std::optional<IncomingRequest> incoming_;  // the request being received
  std::unique_ptr<BulkTarget> target_;
  absl::Status refusal_;  // PrepareBulk's error, until the bulk has been discarded

  absl::flat_hash_map<uint64_t, Unanswered> unanswered_;
  size_t unanswered_control_bytes_ = 0;
};

}  // namespace muster
