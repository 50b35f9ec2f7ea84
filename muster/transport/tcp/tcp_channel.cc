#include "muster/transport/tcp/tcp_channel.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/monotonic.h"
#include "muster/transport/tcp/moved_addresses.h"
#include "muster/transport/tcp/port_secret.h"

namespace muster {
namespace {

bool TryingAgainIsInVain(const absl::Status& status) {
  return status.code() == absl::StatusCode::kPermissionDenied ||
         status.code() == absl::StatusCode::kFailedPrecondition || status.code() == absl::StatusCode::kInvalidArgument;
}

}  // namespace

TcpChannel::TcpChannel(TcpEventLoop& loop, std::string address, HandshakeIdentity identity, const TcpOptions& options,
                       uint64_t seed)
    : loop_(loop),
      address_(std::move(address)),
      identity_(std::move(identity)),
      options_(options),
      dialer_(loop, options_.connect_timeout, options_.lookup),
      backoff_(options_.backoff, seed),
      calls_(loop, [this](uint64_t id) { OnExpired(id); }) {
  calls_.set_peer(address_);
}

TcpChannel::~TcpChannel() {
  if (connection_) connection_->Close();
  loop_.CancelTimer(dial_timer_);
  loop_.CancelTimer(attach_timer_);
  loop_.CancelTimer(silence_timer_);
}

Channel::CallId TcpChannel::Call(const Request& request, ReplyCallback done) {
  absl::Status status = CheckLimits(request);
  const uint64_t id = calls_.Add(request, std::move(done));
  if (!status.ok()) {
    calls_.FinishLater(id, std::move(status));
  } else if (connected()) {
    SendCall(id, *calls_.Find(id));
  } else {
    waiting_.push_back(id);
    if (connection_ == nullptr && !dialing_) Dial();
  }
  return CallId{id};
}

absl::Status TcpChannel::CheckLimits(const Request& request) const {
  const size_t bulk_bytes = TotalBytes(request.bulk);
  if (request.control.size() > options_.limits.max_control_bytes || bulk_bytes > options_.limits.max_bulk_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(address_, ": a request of ", request.control.size(), " control bytes and ", bulk_bytes,
                     " bulk bytes is over the limits of ", options_.limits.max_control_bytes, " and ",
                     options_.limits.max_bulk_bytes));
  }
  if (calls_.size() >= options_.max_calls_in_flight) {
    return absl::ResourceExhaustedError(absl::StrCat(address_, ": ", calls_.size(), " calls are in flight already"));
  }
  return absl::OkStatus();
}

void TcpChannel::Dial() {
  dialing_ = true;
  dialed_ = PresentAddress();
  dialer_.Dial(dialed_, [this](absl::StatusOr<Socket> socket) { OnDialed(std::move(socket)); });
}

std::string TcpChannel::PresentAddress() const {
  return muster::PresentAddress(identity_.token.cluster_file, address_, dialed_.empty() ? address_ : dialed_);
}

void TcpChannel::DialLater() {
  dialing_ = true;
  dial_timer_ = loop_.CallAt(loop_.Now() + backoff_.Next(), [this] {
    dialing_ = false;
    if (calls_.size() > 0) Dial();
  });
}

void TcpChannel::OnDialed(absl::StatusOr<Socket> socket) {
  dialing_ = false;
  if (!socket.ok()) {
    trouble_ = std::string(socket.status().message());
    if (dialed_ != address_) absl::StrAppend(&trouble_, " (it has moved to ", dialed_, ")");
    if (TryingAgainIsInVain(socket.status())) {
      Refuse(socket.status());
    } else {
      DialLater();
    }
    return;
  }
  proven_ = false;
  const Endpoint server = RemoteEndpoint(socket->fd());
  HandshakeIdentity identity = identity_;
  identity.destination = {.address = dialed_,
                          .ends = {.client = LocalEndpoint(socket->fd()).ToString(), .server = server.ToString()}};
  auto handshake = std::make_unique<ClientHandshake>(std::move(identity), RandomNonce(),
                                                     [server] { return FindPortSecret(server); });
  connection_ = std::make_shared<TcpConnection>(loop_, *std::move(socket), options_, std::move(handshake),
                                                static_cast<TcpConnection::Owner*>(this));
  connection_->Start(options_.handshake_timeout);
}

void TcpChannel::OnMoved(uint64_t sent, uint64_t received) {
  counts_.AddSent(sent);
  counts_.AddReceived(received);
}

void TcpChannel::OnSent() {
  if (connection_->outgoing().empty()) drained_at_ = MonotonicNanos();
}

void TcpChannel::OnReady() {
  counts_.AddConnect();
  attaching_ = (connection_->agreed() & kOfferSharedMemory) != 0;
  if (!attaching_) return EndAttach(nullptr);
  attach_timer_ = loop_.CallAt(loop_.Now() + options_.handshake_timeout, [this] { EndAttach(nullptr); });
}

void TcpChannel::Attach(const std::string& control) {
  const std::optional<ShmAddress> address = ShmAddress::Decode(control);
  if (!attaching_ || connector_ != nullptr || !address) return;
  connector_ = std::make_unique<ShmConnector>(loop_, *address, options_.shared_memory, options_.handshake_timeout,
                                              [this](absl::StatusOr<std::unique_ptr<ByteStream>> stream) {
                                                EndAttach(stream.ok() ? *std::move(stream) : nullptr);
                                              });
}

// A null stream: the connection stays on TCP.
void TcpChannel::EndAttach(std::unique_ptr<ByteStream> stream) {
  attaching_ = false;
  loop_.CancelTimer(attach_timer_);
  connector_ = nullptr;
  if (stream != nullptr) connection_->MoveTo(std::move(stream));
  counts_.SetLink(connection_->areas() != nullptr ? "shared memory" : "tcp");
  while (!waiting_.empty()) {
    const uint64_t id = waiting_.front();
    waiting_.pop_front();
    if (CallTable::Call* call = calls_.Find(id)) SendCall(id, *call);
  }
}

void TcpChannel::SendCall(uint64_t id, CallTable::Call& call) {
  call.sent = true;
  counts_.AddCall();
  OutgoingFrame frame = connection_->NewFrame();
  frame.id = id;
  frame.control = call.request.control;
  frame.bulk = call.request.bulk;
  FrameHeader header;
  header.method = call.request.method;
  header.request_id = id;
  header.control_bytes = static_cast<uint32_t>(frame.control.size());
  header.bulk_bytes = TotalBytes(frame.bulk);
  if (call.request.deadline != absl::InfiniteFuture()) header.time_left = call.request.deadline - loop_.Now();
  EncodeFrameHeader(header, frame.header);
  connection_->Send(std::move(frame));
  WatchSilence();
}

void TcpChannel::Cancel(CallId call) {
  Abandon(static_cast<uint64_t>(call), absl::CancelledError(absl::StrCat(address_, ": the call was cancelled")));
}

void TcpChannel::Abandon(uint64_t id, absl::Status status) {
  CallTable::Call* call = calls_.Find(id);
  if (call == nullptr) return;
  if (call->sent && connection_ != nullptr && !connection_->Withdraw(id)) {
    if (connection_->outgoing().Holds(id)) {
      connection_->Fail(absl::UnavailableError("a call was given up in the middle of being sent"));
    } else {
      if (receiving_ == id) {
        receiving_ = 0;
        connection_->DiscardBulk();
      }
      OutgoingFrame frame;
      FrameHeader header;
      header.type = FrameType::kCancel;
      header.request_id = id;
      EncodeFrameHeader(header, frame.header);
      connection_->Send(std::move(frame));
    }
  }
  calls_.FinishLater(id, std::move(status));
}

void TcpChannel::OnExpired(uint64_t id) {
  const CallTable::Call& call = *calls_.Find(id);
  const absl::Duration waited = call.request.deadline - call.started;
  Abandon(id, call.sent ? absl::DeadlineExceededError(
                              absl::StrCat(address_, " didn't answer within ",
                                           absl::FormatDuration(absl::Trunc(waited, absl::Milliseconds(1)))))
                        : UnreachableError(address_, waited, trouble_));
}

absl::StatusOr<const MutableSegments*> TcpChannel::OnFrame(const FrameHeader& header, std::string control) {
  receiving_ = 0;
  if (header.type == FrameType::kPong) return nullptr;
  if (header.type == FrameType::kShmAddress) {
    Attach(control);
    return nullptr;
  }
  if (header.type != FrameType::kReply && header.type != FrameType::kError) {
    return absl::UnavailableError("it sent a frame that only a client sends");
  }
  if (header.request_id > calls_.last_id() || connection_->outgoing().Holds(header.request_id)) {
    return absl::UnavailableError("it answered a request that it wasn't sent");
  }
  if (!std::exchange(proven_, true)) backoff_.Reset();
  CallTable::Call* call = calls_.Find(header.request_id);
  if (call == nullptr) return nullptr;  // given up meanwhile
  receiving_ = header.request_id;
  if (header.type == FrameType::kError) {
    reply_ = Named(absl::Status(header.code, control));
    return nullptr;
  }
  const size_t room = TotalBytes(call->request.into);
  if (header.bulk_bytes > room) {
    reply_ = absl::DataLossError(
        absl::StrCat(address_, ": a reply of ", header.bulk_bytes, " bytes doesn't fit into the ", room, " provided"));
    return nullptr;
  }
  reply_ = Reply{std::move(control), header.bulk_bytes, drained_at_, MonotonicNanos()};
  return &call->request.into;
}

void TcpChannel::OnFrameEnd() {
  if (receiving_ == 0) return;
  const std::shared_ptr<TcpConnection> connection = connection_;  // the callback may destroy the channel
  connection->ReuseControl(calls_.Finish(std::exchange(receiving_, 0), std::move(reply_)));
}

void TcpChannel::OnClosed(const absl::Status& why, TcpConnection::Fault fault) {
  receiving_ = 0;
  attaching_ = false;
  loop_.CancelTimer(attach_timer_);
  connector_ = nullptr;
  trouble_ = std::string(why.message());
  counts_.SetLink("");
  const std::shared_ptr<TcpConnection> closed = std::exchange(connection_, nullptr);
  if (fault == TcpConnection::Fault::kHandshake && TryingAgainIsInVain(why)) {
    Refuse(why);
    return;
  }
  // Unsent frames go with the next connection; nobody can tell what has become of the others.
  std::vector<uint64_t> unsent;
  for (const OutgoingFrame& frame : closed->TakeUnsent()) {
    CallTable::Call* call = calls_.Find(frame.id);
    if (call == nullptr) continue;
    call->sent = false;
    unsent.push_back(frame.id);
  }
  waiting_.insert(waiting_.begin(), unsent.begin(), unsent.end());
  std::vector<uint64_t> broken;
  for (uint64_t id : calls_.Ids()) {
    if (calls_.Find(id)->sent) broken.push_back(id);
  }
  if (!proven_) {
    DialLater();
  } else if (broken.size() < calls_.size()) {
    Dial();
  }
  calls_.FinishAll(broken, Named(absl::UnavailableError(trouble_)));
}

void TcpChannel::Refuse(const absl::Status& why) {
  waiting_.clear();
  calls_.FinishAll(calls_.Ids(), Named(why));
}

absl::Status TcpChannel::Named(const absl::Status& status) const {
  return absl::Status(status.code(), absl::StrCat(address_, ": ", status.message()));
}

void TcpChannel::WatchSilence() {
  if (watching_silence_) return;
  watching_silence_ = true;
  heard_ = loop_.Now();
  suspect_ = false;
  silence_timer_ = loop_.CallAt(heard_ + options_.ping_interval, [this] { OnSilence(); });
}

void TcpChannel::OnSilence() {
  watching_silence_ = false;
  if (!connected() || calls_.size() == 0) return;
  const absl::Time now = loop_.Now();
  const uint64_t moved = connection_->bytes_received() + connection_->bytes_sent();
  if (moved != bytes_moved_) {
    bytes_moved_ = moved;
    heard_ = now;
    suspect_ = false;
  } else if (now - heard_ >= options_.silence_timeout && std::exchange(suspect_, true)) {
    connection_->Fail(
        absl::UnavailableError(absl::StrCat("nothing was heard from it for ", absl::FormatDuration(now - heard_))));
    return;
  } else if (const std::string present = PresentAddress(); present != dialed_) {
    connection_->Fail(absl::UnavailableError(absl::StrCat("it has moved to ", present)));
    return;
  } else if (connection_->outgoing().empty()) {
    OutgoingFrame frame;
    FrameHeader header;
    header.type = FrameType::kPing;
    EncodeFrameHeader(header, frame.header);
    connection_->Send(std::move(frame));
    bytes_moved_ = connection_->bytes_received() + connection_->bytes_sent();
  }
  watching_silence_ = true;
  silence_timer_ = loop_.CallAt(now + options_.ping_interval, [this] { OnSilence(); });
}

}  // namespace muster
