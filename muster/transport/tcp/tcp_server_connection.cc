#include "muster/transport/tcp/tcp_server_connection.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/transport/shm/shm_connector.h"

namespace muster {
namespace {

// Responders may outlive the connection.
class TcpSink final : public Responder::Sink {
 public:
  explicit TcpSink(std::weak_ptr<TcpServerConnection> connection) : connection_(std::move(connection)) {}

  MutableByteSpan Reserve(uint64_t request, size_t bytes) override {
    const std::shared_ptr<TcpServerConnection> connection = connection_.lock();
    if (connection == nullptr) return {};
    Extent extent = connection->Reserve(bytes);
    const MutableByteSpan memory = extent.memory();
    if (extent) reserved_[request] = std::move(extent);
    return memory;
  }
  void Send(uint64_t request, absl::Status status, absl::string_view control, absl::Span<const ByteSpan> bulk,
            std::shared_ptr<const void> keep_alive) override {
    Extent extent;
    if (const auto it = reserved_.find(request); it != reserved_.end()) {
      extent = std::move(it->second);
      reserved_.erase(it);
    }
    if (const std::shared_ptr<TcpServerConnection> connection = connection_.lock())
      connection->Answer(request, std::move(status), control, bulk, std::move(keep_alive), std::move(extent));
  }

 private:
  const std::weak_ptr<TcpServerConnection> connection_;
  absl::flat_hash_map<uint64_t, Extent> reserved_;  // by request: where the handler writes its answer's bulk
};

}  // namespace

TcpServerConnection::TcpServerConnection(TcpEventLoop& loop, const TcpOptions& options, RequestHandler& handler,
                                         Host& host, ShmAcceptor* port, ConnectionId id, std::string peer)
    : loop_(loop), options_(options), handler_(handler), host_(host), port_(port), id_(id), peer_(std::move(peer)) {}

void TcpServerConnection::Start(Socket socket, std::unique_ptr<Handshake> handshake) {
  sink_ = std::make_shared<TcpSink>(weak_from_this());
  connection_ = std::make_shared<TcpConnection>(loop_, std::move(socket), options_, std::move(handshake),
                                                static_cast<TcpConnection::Owner*>(this));
  connection_->Start(options_.hello_timeout);
}

void TcpServerConnection::Close() {
  closed_ = true;
  WithdrawOffer();
  connection_->Close();
  target_ = nullptr;
}

void TcpServerConnection::OnReady() {
  passed_ = true;
  host_.OnPassed(id_);
  handler_.OnConnect(id_, peer_);
  if (port_ == nullptr || (connection_->agreed() & kOfferSharedMemory) == 0) return;
  offered_nonce_ = port_->Expect([this](std::unique_ptr<ByteStream> stream) {
    offered_nonce_.reset();
    connection_->MoveTo(std::move(stream));
  });
  OutgoingFrame frame;
  frame.control = ShmAddress{.nonce = *offered_nonce_, .socket = port_->name()}.Encode();
  FrameHeader offer;
  offer.type = FrameType::kShmAddress;
  offer.control_bytes = static_cast<uint32_t>(frame.control.size());
  EncodeFrameHeader(offer, frame.header);
  connection_->Send(std::move(frame));
}

void TcpServerConnection::WithdrawOffer() {
  if (offered_nonce_) port_->Forget(*offered_nonce_);
  offered_nonce_.reset();
}

Extent TcpServerConnection::Reserve(size_t bytes) {
  const BulkAreas* areas = connection_->areas();
  return areas == nullptr || bytes < areas->least_beside ? Extent() : areas->outgoing->Reserve(bytes);
}

absl::StatusOr<const MutableSegments*> TcpServerConnection::OnFrame(const FrameHeader& header, std::string control) {
  switch (header.type) {
    case FrameType::kRequest:
      return BeginRequest(header, std::move(control));
    case FrameType::kCancel: {
      auto it = unanswered_.find(header.request_id);
      if (it != unanswered_.end()) it->second.cancelled = true;
      return nullptr;
    }
    case FrameType::kPing: {
      OutgoingFrame frame;
      FrameHeader pong;
      pong.type = FrameType::kPong;
      EncodeFrameHeader(pong, frame.header);
      connection_->Send(std::move(frame));
      PushBack();
      return nullptr;
    }
    default:
      return absl::InvalidArgumentError("it sent a frame that only a server sends");
  }
}

absl::StatusOr<const MutableSegments*> TcpServerConnection::BeginRequest(const FrameHeader& header,
                                                                         std::string control) {
  if (header.request_id <= last_request_) return absl::InvalidArgumentError("its request ids don't rise");
  WithdrawOffer();  // the client has stayed on TCP
  last_request_ = header.request_id;
  ++requests_;
  unanswered_[header.request_id].control_bytes = control.size();
  unanswered_control_bytes_ += control.size();
  incoming_.emplace();
  incoming_->connection = id_;
  incoming_->method = header.method;
  incoming_->control = std::move(control);
  incoming_->bulk_bytes = header.bulk_bytes;
  incoming_->in_shared_memory = header.beside;
  if (header.time_left != absl::InfiniteDuration()) incoming_->deadline = loop_.Now() + header.time_left;
  if (header.bulk_bytes == 0) return nullptr;

  absl::StatusOr<std::unique_ptr<BulkTarget>> target = handler_.PrepareBulk(*incoming_);
  if (!target.ok()) {
    refusal_ = std::move(target).status();
    return nullptr;
  }
  const bool borrowed = header.beside && *target != nullptr && (*target)->BorrowsBulk();
  if (*target == nullptr || (!borrowed && TotalBytes((*target)->segments()) != header.bulk_bytes)) {
    refusal_ = absl::InternalError("the handler's memory doesn't have the size of the request's bulk");
    return nullptr;
  }
  target_ = *std::move(target);
  return &target_->segments();
}

void TcpServerConnection::OnFrameEnd() {
  if (!incoming_) return;
  const std::shared_ptr<TcpServerConnection> self = shared_from_this();
  IncomingRequest request = *std::exchange(incoming_, std::nullopt);
  std::unique_ptr<BulkTarget> target = std::move(target_);
  if (!refusal_.ok()) {
    Answer(last_request_, std::exchange(refusal_, absl::OkStatus()), {}, {}, nullptr);
    return;
  }
  handler_.Handle(request, std::move(target), Responder(sink_, last_request_));
  connection_->ReuseControl(std::move(request.control));
  PushBack();
}

void TcpServerConnection::Answer(uint64_t id, absl::Status status, absl::string_view control,
                                 absl::Span<const ByteSpan> bulk, std::shared_ptr<const void> keep_alive,
                                 Extent extent) {
  auto it = unanswered_.find(id);
  if (it == unanswered_.end()) return;
  const bool cancelled = it->second.cancelled;
  unanswered_control_bytes_ -= it->second.control_bytes;
  unanswered_.erase(it);
  if (!cancelled) {
    const size_t bulk_bytes = TotalBytes(bulk);
    if (status.ok() &&
        (control.size() > options_.limits.max_control_bytes || bulk_bytes > options_.limits.max_bulk_bytes)) {
      status = absl::InternalError(absl::StrCat("the answer of ", control.size(), " control bytes and ", bulk_bytes,
                                                " bulk bytes is over the limit"));
    }
    OutgoingFrame frame = connection_->NewFrame();
    FrameHeader header;
    header.request_id = id;
    bool written = false;  // the bulk is already where the client reads it
    if (status.ok()) {
      header.type = FrameType::kReply;
      header.bulk_bytes = bulk_bytes;
      frame.control.assign(control.data(), control.size());
      frame.bulk.assign(bulk.begin(), bulk.end());
      frame.keep_alive = std::move(keep_alive);
      written = extent && frame.bulk.size() == 1 && frame.bulk[0].data() == extent.memory().data() &&
                frame.bulk[0].size() == extent.memory().size();
    } else {
      constexpr size_t kMostMessage = 64 << 10;
      header.type = FrameType::kError;
      header.code = status.code();
      frame.control.assign(status.message().data(), std::min(status.message().size(), kMostMessage));
    }
    header.control_bytes = static_cast<uint32_t>(frame.control.size());
    EncodeFrameHeader(header, frame.header);
    if (written) frame.PutBeside(std::move(extent));
    connection_->Send(std::move(frame));
  }
  PushBack();
}

// Stops reading while this client has too many unanswered requests or unsent replies.
void TcpServerConnection::PushBack() {
  const OutgoingQueue& queue = connection_->outgoing();
  connection_->SetPaused(queue.size() > options_.max_queued_replies ||
                         queue.bytes() > options_.max_queued_reply_bytes ||
                         unanswered_.size() >= options_.max_unanswered ||
                         unanswered_control_bytes_ > options_.max_unanswered_control_bytes);
}

void TcpServerConnection::OnClosed(const absl::Status&, TcpConnection::Fault fault) {
  const std::shared_ptr<TcpServerConnection> self = shared_from_this();
  WithdrawOffer();
  incoming_.reset();
  target_ = nullptr;
  if (passed_) handler_.OnDisconnect(id_);
  // The handler may have stopped the listener.
  if (!closed_) host_.OnEnd(id_, fault);
}

}  // namespace muster
