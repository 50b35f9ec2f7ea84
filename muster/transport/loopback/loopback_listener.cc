#include "muster/transport/loopback/loopback_listener.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/transport/frame.h"
#include "muster/transport/loopback/loopback_channel.h"

namespace muster {
namespace {

class LoopbackSink final : public Responder::Sink {
 public:
  LoopbackSink(std::shared_ptr<LoopbackLink> link, uint64_t id, std::shared_ptr<LoopbackMemory> memory)
      : link_(std::move(link)), id_(id), memory_(std::move(memory)) {}

  void Send(uint64_t, absl::Status status, absl::string_view control, absl::Span<const ByteSpan> bulk,
            std::shared_ptr<const void> keep_alive) override {
    LoopbackListener* listener = link_->server->listener;
    if (listener) listener->Answer(link_, id_, *memory_, std::move(status), control, bulk);
    keep_alive.reset();  // everything has been copied
  }

 private:
  const std::shared_ptr<LoopbackLink> link_;
  const uint64_t id_;
  const std::shared_ptr<LoopbackMemory> memory_;
};

}  // namespace

size_t CopySegments(absl::Span<const ByteSpan> from, const MutableSegments& to, size_t limit) {
  size_t copied = 0;
  size_t target = 0;
  size_t used = 0;  // of to[target]
  for (ByteSpan piece : from) {
    while (!piece.empty() && target < to.size() && copied < limit) {
      const size_t n = std::min({piece.size(), to[target].size() - used, limit - copied});
      if (n > 0) std::memcpy(to[target].data() + used, piece.data(), n);
      piece = piece.subspan(n);
      copied += n;
      used += n;
      if (used == to[target].size()) {
        ++target;
        used = 0;
      }
    }
  }
  return copied;
}

absl::Status CheckLoopbackPeer(const HandshakeIdentity& client, const HandshakeIdentity& server) {
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

LoopbackListener::LoopbackListener(LoopbackNetwork& network, EventLoop& loop, RequestHandler& handler,
                                   HandshakeIdentity identity)
    : network_(network),
      loop_(loop),
      handler_(handler),
      self_(std::make_shared<LoopbackServer>(loop, std::move(identity), *this)) {}

LoopbackListener::~LoopbackListener() {
  if (!address_.empty()) network_.Remove(address_);
  self_->mailbox.Close();
  self_->listener = nullptr;
  for (auto& [link, connection] : connections_) TellBroken(connection.link);
}

absl::Status LoopbackListener::Start(const std::string& address) {
  ASSIGN_OR_RETURN(address_, network_.Add(address, self_));
  return absl::OkStatus();
}

void LoopbackListener::OnOpen(const std::shared_ptr<LoopbackLink>& link) {
  const ConnectionId id{next_connection_++};
  connections_[link.get()] = {id, link};
  ++stats_.accepted;
  stats_.connections = connections_.size();
  handler_.OnConnect(id, absl::StrCat("loopback:", static_cast<uint64_t>(id)));
}

void LoopbackListener::OnClose(const LoopbackLink* link) {
  auto it = connections_.find(link);
  if (it == connections_.end()) return;
  const Connection connection = it->second;
  connections_.erase(it);
  stats_.connections = connections_.size();
  handler_.OnDisconnect(connection.id);
}

void LoopbackListener::OnRequest(const LoopbackLink* link, LoopbackMessage message) {
  auto it = connections_.find(link);
  if (it == connections_.end()) return;
  const std::shared_ptr<LoopbackLink> kept = it->second.link;
  IncomingRequest request;
  request.connection = it->second.id;
  request.method = message.method;
  request.control = std::move(message.control);
  request.bulk_bytes = message.bulk_bytes;
  request.deadline = loop_.Now() + message.time_left;
  stats_.bytes_received += kFrameHeaderBytes + request.control.size() + request.bulk_bytes;
  if (message.cut_after) {
    Cut(link, request, message);
    return;
  }
  ++stats_.requests;
  std::unique_ptr<BulkTarget> bulk;
  if (request.bulk_bytes > 0) {
    absl::StatusOr<std::unique_ptr<BulkTarget>> received = ReceiveBulk(request, message);
    if (!received.ok()) {
      Answer(kept, message.id, *message.memory, received.status(), {}, {});
      return;
    }
    bulk = *std::move(received);
    if (bulk == nullptr) return;
  }
  handler_.Handle(request, std::move(bulk),
                  Responder(std::make_unique<LoopbackSink>(kept, message.id, message.memory)));
}

// Returns null if the caller has taken its memory back: then the request doesn't exist any more.
absl::StatusOr<std::unique_ptr<BulkTarget>> LoopbackListener::ReceiveBulk(const IncomingRequest& request,
                                                                          const LoopbackMessage& message) {
  ASSIGN_OR_RETURN(std::unique_ptr<BulkTarget> target, handler_.PrepareBulk(request));
  if (target == nullptr || TotalBytes(target->segments()) != request.bulk_bytes) {
    return absl::InternalError("the handler's memory doesn't have the size of the request's bulk");
  }
  MutexLock lock(message.memory->mutex);
  if (!message.memory->live) return std::unique_ptr<BulkTarget>();
  CopySegments(message.memory->bulk, target->segments(), request.bulk_bytes);
  return target;
}

void LoopbackListener::Cut(const LoopbackLink* link, const IncomingRequest& request, const LoopbackMessage& message) {
  const std::shared_ptr<LoopbackLink> kept = connections_[link].link;
  if (request.bulk_bytes > 0 && *message.cut_after >= request.control.size()) {
    absl::StatusOr<std::unique_ptr<BulkTarget>> target = handler_.PrepareBulk(request);
    if (target.ok() && *target != nullptr) {
      const size_t part = std::min(*message.cut_after - request.control.size(), request.bulk_bytes - 1);
      MutexLock lock(message.memory->mutex);
      if (message.memory->live) CopySegments(message.memory->bulk, (*target)->segments(), part);
    }
  }
  OnClose(link);
  TellBroken(kept);
}

void LoopbackListener::Answer(const std::shared_ptr<LoopbackLink>& link, uint64_t id, LoopbackMemory& memory,
                              absl::Status status, absl::string_view control, absl::Span<const ByteSpan> bulk) {
  if (!connections_.contains(link.get())) return;
  absl::StatusOr<Reply> result = Reply{};
  if (!status.ok()) {
    result = std::move(status);
  } else {
    const size_t bulk_bytes = TotalBytes(bulk);
    MutexLock lock(memory.mutex);
    if (!memory.live) return;
    const size_t room = TotalBytes(memory.into);
    if (bulk_bytes > room) {
      result = absl::DataLossError(absl::StrCat("a reply of ", bulk_bytes, " bytes doesn't fit into ", room));
    } else {
      CopySegments(bulk, memory.into, bulk_bytes);
      stats_.bytes_sent += kFrameHeaderBytes + control.size() + bulk_bytes;
      result = Reply{std::string(control), bulk_bytes};
    }
  }
  link->client->mailbox.Post([link, id, result = std::move(result)]() mutable {
    if (link->client->channel) link->client->channel->OnReply(link.get(), id, std::move(result));
  });
}

void LoopbackListener::TellBroken(const std::shared_ptr<LoopbackLink>& link) {
  link->client->mailbox.Post([link] {
    if (link->client->channel) link->client->channel->OnBroken(link.get());
  });
}

}  // namespace muster
