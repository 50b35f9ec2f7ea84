#include "muster/transport/loopback/loopback_listener.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/transport/frame.h"
#include "muster/transport/loopback/loopback_channel.h"

namespace muster {
namespace {

class LoopbackSink final : public Responder::Sink {
 public:
  LoopbackSink(LoopbackNetwork::Link link, std::shared_ptr<LoopbackMessage> message)
      : link_(std::move(link)), message_(std::move(message)) {}

  void Send(uint64_t, absl::Status status, absl::string_view control, absl::Span<const ByteSpan> bulk,
            std::shared_ptr<const void> keep_alive) override {
    LoopbackListener* listener = link_->server->end;
    if (listener) listener->Answer(link_, message_, std::move(status), control, bulk);
    keep_alive.reset();  // everything has been copied
  }

 private:
  const LoopbackNetwork::Link link_;
  const std::shared_ptr<LoopbackMessage> message_;
};

// The checks of the TCP handshake, without its bytes.
absl::Status CheckPeer(const HandshakeIdentity& client, const HandshakeIdentity& server) {
  if (client.protocol_version != server.protocol_version) {
    return absl::FailedPreconditionError(absl::StrCat("it speaks protocol version ", server.protocol_version, " (",
                                                      server.build_version, "), this process version ",
                                                      client.protocol_version, " (", client.build_version, ")"));
  }
  if (client.token.secret != server.token.secret) {
    return absl::PermissionDeniedError("it belongs to another job: its job token differs from this process's");
  }
  return absl::OkStatus();
}

}  // namespace

LoopbackListener::LoopbackListener(LoopbackNetwork& network, EventLoop& loop, RequestHandler& handler,
                                   LoopbackParty party)
    : network_(network),
      loop_(loop),
      handler_(handler),
      self_(std::make_shared<LoopbackServer>(loop, std::move(party), *this)) {}

LoopbackListener::~LoopbackListener() {
  network_.RemoveIf([this](const LoopbackServer& server) { return &server == self_.get(); });
  self_->mailbox.Close();
  self_->end = nullptr;
  for (auto& [key, connection] : connections_) {
    connection.link->server_open = false;
    network_.ToClient(connection.link, [](LoopbackChannel& channel) { channel.OnBroken(); });
  }
}

absl::Status LoopbackListener::Start(const std::string& address) {
  ASSIGN_OR_RETURN(address_, network_.Add(address, self_));
  return absl::OkStatus();
}

void LoopbackListener::OnOpen(const LoopbackNetwork::Link& link) {
  if (absl::Status status = CheckPeer(link->client->party.identity, self_->party.identity); !status.ok()) {
    ++stats_.dropped_handshake;
    link->server_open = false;
    network_.ToClient(link, [status = std::move(status)](LoopbackChannel& channel) { channel.OnRefused(status); });
    return;
  }
  const ConnectionId id{next_connection_++};
  connections_[link.get()] = {id, link, {}};
  ++stats_.accepted;
  stats_.connections = connections_.size();
  handler_.OnConnect(id, absl::StrCat("loopback:", static_cast<uint64_t>(id)));
  network_.ToClient(link, [](LoopbackChannel& channel) { channel.OnConnected(); });
}

void LoopbackListener::OnClose(LoopbackLink& link) {
  link.server_open = false;
  auto it = connections_.find(&link);
  if (it == connections_.end()) return;
  const Connection connection = std::move(it->second);
  connections_.erase(it);
  stats_.connections = connections_.size();
  handler_.OnDisconnect(connection.id);
}

void LoopbackListener::OnControl(const LoopbackNetwork::Link& link, const std::shared_ptr<LoopbackMessage>& message) {
  IncomingRequest& request = message->request;
  request.connection = connections_[link.get()].id;
  request.deadline = loop_.Now() + message->time_left;
  stats_.bytes_received += kFrameHeaderBytes + request.control.size();
  ++stats_.requests;
  if (request.bulk_bytes == 0) return HandOn(link, message, nullptr);
  absl::StatusOr<std::unique_ptr<BulkTarget>> target = handler_.PrepareBulk(request);
  if (target.ok() && (*target == nullptr || TotalBytes((*target)->segments()) != request.bulk_bytes))
    target = absl::InternalError("the handler's memory doesn't fit the bulk it was told of");
  if (!target.ok()) return Answer(link, message, target.status(), {}, {});
  connections_[link.get()].targets[message->id] = *std::move(target);
}

void LoopbackListener::OnBulk(const LoopbackNetwork::Link& link, const std::shared_ptr<LoopbackMessage>& message,
                              size_t bytes) {
  auto& targets = connections_[link.get()].targets;
  const auto found = targets.find(message->id);
  if (found == targets.end()) return;  // it has no bulk, or the handler doesn't want it
  stats_.bytes_received += bytes;
  const bool there = message->CopyBulk(found->second->segments(), bytes);
  if (bytes < message->request.bulk_bytes) return;
  std::unique_ptr<BulkTarget> target = std::move(found->second);
  targets.erase(found);
  if (there) HandOn(link, message, std::move(target));
}

void LoopbackListener::HandOn(const LoopbackNetwork::Link& link, const std::shared_ptr<LoopbackMessage>& message,
                              std::unique_ptr<BulkTarget> target) {
  handler_.Handle(message->request, std::move(target), Responder(std::make_unique<LoopbackSink>(link, message)));
}

void LoopbackListener::Answer(const LoopbackNetwork::Link& link, const std::shared_ptr<LoopbackMessage>& message,
                              absl::Status status, absl::string_view control, absl::Span<const ByteSpan> bulk) {
  if (!link->server_open) return;
  if (status.ok()) stats_.bytes_sent += kFrameHeaderBytes + control.size() + TotalBytes(bulk);
  network_.SendReply(link, message, std::move(status), control, bulk);
}

}  // namespace muster
