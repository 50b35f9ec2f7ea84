// The serving end of the TCP transport, and of the shared memory that its clients move to: accepts connections, limits
// what each of them may hold, and hands requests to the handler. See listener.h for the contract. Internal to tcp/.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "muster/transport/io/acceptor.h"
#include "muster/transport/io/socket.h"
#include "muster/transport/io/tcp_address.h"
#include "muster/transport/io/tcp_event_loop.h"
#include "muster/transport/listener.h"
#include "muster/transport/shm/shm_acceptor.h"
#include "muster/transport/tcp/port_secret.h"
#include "muster/transport/tcp/stranger_pool.h"
#include "muster/transport/tcp/tcp_options.h"
#include "muster/transport/tcp/tcp_server_connection.h"

namespace muster {

class TcpListener final : public Listener, private TcpServerConnection::Host {
 public:
  TcpListener(TcpEventLoop& loop, RequestHandler& handler, HandshakeIdentity identity, const TcpOptions& options);
  ~TcpListener() override;

  // Call once, before anything else. Errors as in Transport::Listen.
  absl::Status Start(const std::string& address);

  const std::string& address() const override { return address_; }
  Stats stats() const override;

 private:
  // TcpServerConnection::Host
  void OnPassed(ConnectionId id) override;
  void OnEnd(ConnectionId id, TcpConnection::Fault fault) override;

  absl::Status Bind(const Endpoint& endpoint, const std::string& address);
  void KeepSecretLater();
  void OnAccepted(Socket socket);
  // Ends older connections in the handshake, as far as a new one from `address` needs their place. False: there is no
  // place for a client, but for telling it so.
  bool MakeRoom(const Socket& socket, const std::string& address);

  TcpEventLoop& loop_;
  RequestHandler& handler_;
  HandshakeIdentity identity_;  // constant after Start, like address_
  const TcpOptions options_;
  std::string address_;

  Socket socket_;
  std::unique_ptr<PortSecret> secret_;  // null: the job has a token
  EventLoop::TimerId keep_timer_{};
  std::optional<Acceptor> acceptor_;
  std::unique_ptr<ShmAcceptor> port_;  // null: all clients stay on TCP
  uint64_t next_id_ = 1;
  absl::flat_hash_map<uint64_t, std::shared_ptr<TcpServerConnection>> connections_;  // strangers included
  StrangerPool strangers_;
  int first_reserved_ = 0;  // descriptors from this one on are for files; constant after Start
  Stats stats_;             // without the counts of the open connections
};

}  // namespace muster
