// The client's end of the TCP transport: calls over one connection, which is made when it is first needed, remade when
// it breaks, where the server is by then (moved_addresses.h), and moves to shared memory if the server is on the same
// host. See channel.h for the contract. Internal to tcp/.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "muster/transport/backoff.h"
#include "muster/transport/call_table.h"
#include "muster/transport/channel.h"
#include "muster/transport/io/tcp_event_loop.h"
#include "muster/transport/shm/shm_connector.h"
#include "muster/transport/tcp/tcp_connection.h"
#include "muster/transport/tcp/tcp_dialer.h"
#include "muster/transport/tcp/tcp_options.h"
#include "muster/transport/traffic_counts.h"
#include "muster/transport/transport.h"

namespace muster {

class TcpChannel final : public Channel, private TcpConnection::Owner {
 public:
  TcpChannel(TcpEventLoop& loop, std::string address, HandshakeIdentity identity, const TcpOptions& options,
             uint64_t seed);
  ~TcpChannel() override;

  CallId Call(const Request& request, ReplyCallback done) override;
  void Cancel(CallId call) override;
  const std::string& peer() const override { return address_; }
  std::string trouble() const override { return connected() ? "" : trouble_; }
  Stats stats() const override { return counts_.Read(); }

 private:
  // TcpConnection::Owner
  void OnReady() override;
  absl::StatusOr<const MutableSegments*> OnFrame(const FrameHeader& header, std::string control) override;
  void OnFrameEnd() override;
  void OnMoved(uint64_t sent, uint64_t received) override;
  void OnSent() override;
  void OnClosed(const absl::Status& why, TcpConnection::Fault fault) override;

  bool connected() const { return connection_ != nullptr && connection_->ready() && !attaching_; }
  absl::Status CheckLimits(const Request& request) const;
  void Dial();
  void DialLater();
  // Returns where the peer is now.
  std::string PresentAddress() const;
  void OnDialed(absl::StatusOr<Socket> socket);
  void Attach(const std::string& control);
  void EndAttach(std::unique_ptr<ByteStream> stream);
  void SendCall(uint64_t id, CallTable::Call& call);
  void Abandon(uint64_t id, absl::Status status);
  void OnExpired(uint64_t id);
  // Ends all calls that wait for a connection with `why`.
  void Refuse(const absl::Status& why);
  absl::Status Named(const absl::Status& status) const;  // prefixed with the peer's address
  void WatchSilence();
  void OnSilence();

  TcpEventLoop& loop_;
  const std::string address_;  // the name of the peer, also after it has moved
  const HandshakeIdentity identity_;
  const TcpOptions options_;

  std::shared_ptr<TcpConnection> connection_;  // null without a connection, even one in its handshake
  TcpDialer dialer_;
  Backoff backoff_;
  bool dialing_ = false;  // or about to, once the back-off is over
  std::string dialed_;    // the address of the last attempt
  EventLoop::TimerId dial_timer_{};
  // True while the connection may move to shared memory; nothing is sent until that is decided.
  bool attaching_ = false;
  EventLoop::TimerId attach_timer_{};
  std::unique_ptr<ShmConnector> connector_;
  bool proven_ = false;  // this connection has brought a reply
  std::string trouble_ = "there is no answer yet";

  std::deque<uint64_t> waiting_;  // calls that wait for a connection; some may have ended
  uint64_t receiving_ = 0;        // the call whose reply is being received; 0: none, or the call was given up
  absl::StatusOr<Reply> reply_ = Reply{};
  int64_t drained_at_ = 0;  // when everything queued had last been sent

  bool watching_silence_ = false;
  EventLoop::TimerId silence_timer_{};
  uint64_t bytes_moved_ = 0;  // in both directions at the last check, not counting pings
  absl::Time heard_;          // when bytes_moved_ last grew
  bool suspect_ = false;      // too long silent at the last check; this process may have been stopped, so check again

  TrafficCounts counts_;
  CallTable calls_;  // last: its destructor calls back
};

}  // namespace muster
