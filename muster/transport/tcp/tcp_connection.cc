#include "muster/transport/tcp/tcp_connection.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/transport/io/socket_stream.h"
#include "muster/transport/io/tcp_address.h"
#include "muster/transport/little_endian.h"

namespace muster {
namespace {

constexpr size_t kMostVectors = 64;
// After this many bytes a connection lets the others have a turn.
constexpr size_t kTurnBytes = 4 << 20;
// Beside the stream, the reader may begin after this many bytes: they stay in a core's cache, or one shared by two.
constexpr size_t kPublishBytes = 256 << 10;

absl::Status NetworkError(const char* what, int error) {
  return absl::UnavailableError(absl::StrCat("the connection broke while ", what, ": ", Describe(error)));
}

}  // namespace

TcpConnection::TcpConnection(TcpEventLoop& loop, Socket socket, const TcpOptions& options,
                             std::unique_ptr<Handshake> handshake, Owner* owner)
    : loop_(loop),
      options_(options),
      limits_(options.limits),
      owner_(owner),
      stream_(std::make_unique<SocketStream>(loop.poller(), std::move(socket))),
      handshake_(std::move(handshake)) {}

void TcpConnection::Start(absl::Duration hello_timeout) {
  stream_->Start({.read = true}, this);
  const absl::Time now = loop_.Now();
  handshake_deadline_ = now + options_.handshake_timeout;
  LimitHandshake(std::min(now + hello_timeout, handshake_deadline_));
  Read();
}

void TcpConnection::LimitHandshake(absl::Time until) {
  loop_.CancelTimer(handshake_timer_);
  handshake_timer_ = loop_.CallAt(until, [weak = weak_from_this(), until] {
    const std::shared_ptr<TcpConnection> self = weak.lock();
    if (self == nullptr) return;
    // Reads first: bytes that arrived while this process itself was busy count.
    self->Read();
    const bool got_on = self->ready() || (self->greeted_ && until < self->handshake_deadline_);
    if (!got_on) self->Fail(absl::UnavailableError("the handshake took too long"), Fault::kHandshake);
  });
}

void TcpConnection::Close() {
  if (owner_ == nullptr) return;
  owner_ = nullptr;
  CloseStreams();
  outgoing_.Clear();
}

void TcpConnection::MoveTo(std::unique_ptr<ByteStream> stream) {
  if (!open()) return;
  if (MidFrame() || !outgoing_.empty()) {
    Fail(absl::UnavailableError("it moved to shared memory in the middle of a frame"), Fault::kMalformed);
    return;
  }
  limits_.beside = true;
  stream_->Stop();
  left_ = std::exchange(stream_, std::move(stream));
  stream_->Start({.read = !paused_, .write = write_waiting_}, this);
}

void TcpConnection::CloseStreams() {
  loop_.CancelTimer(handshake_timer_);
  loop_.CancelTimer(progress_timer_);
  bulk_.Discard();
  stream_ = nullptr;
  left_ = nullptr;
}

void TcpConnection::Fail(absl::Status why, Fault fault) {
  if (!open()) return;
  failed_ = true;
  CloseStreams();
  loop_.Post([self = shared_from_this(), why = std::move(why), fault] {
    if (Owner* owner = std::exchange(self->owner_, nullptr)) owner->OnClosed(why, fault);
    self->outgoing_.Clear();
  });
}

void TcpConnection::Send(OutgoingFrame frame) {
  if (owner_ == nullptr) return;
  const BulkAreas* areas = this->areas();
  if (areas != nullptr && !frame.bare && TotalBytes(frame.bulk) >= areas->least_beside) frame.beside = true;
  outgoing_.Push(std::move(frame));
  if (!write_waiting_) Flush();
}

void TcpConnection::ReuseControl(std::string memory) {
  constexpr size_t kMostBytes = 64 << 10;
  if (part_ == Part::kHeader && memory.capacity() > control_.capacity() && memory.capacity() <= kMostBytes)
    control_ = std::move(memory);
}

void TcpConnection::Flush() {
  if (flushing_ || !open()) return;
  const std::shared_ptr<TcpConnection> self = shared_from_this();
  flushing_ = true;
  std::vector<OutgoingFrame> done = std::move(done_);
  size_t turn = 0;
  while (open() && !outgoing_.empty()) {
    size_t wanted = 0;
    const ssize_t n = SendSome(&wanted);
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) {
        SetWriteWaiting(true);
      } else {
        Fail(NetworkError("sending", errno), errno == EBADMSG ? Fault::kMalformed : Fault::kLost);
      }
      break;
    }
    bytes_sent_ += n;
    owner_->OnMoved(n, 0);
    turn += n;
    outgoing_.Advance(n, done);
    if (open() && (n < wanted || (turn > kTurnBytes && !outgoing_.empty()))) {
      SetWriteWaiting(true);
      break;
    }
  }
  flushing_ = false;
  if (outgoing_.empty()) {
    sending_.End();
    if (open()) SetWriteWaiting(false);
  }
  const bool some = !done.empty();
  for (OutgoingFrame& frame : done) outgoing_.Reuse(std::move(frame));  // may lead back here
  done.clear();
  done_ = std::move(done);
  if (some && open()) owner_->OnSent();
}

// Returns what sendmsg would.
ssize_t TcpConnection::SendSome(size_t* wanted) {
  if (OutgoingFrame* frame = outgoing_.Placing()) {
    const ssize_t n = CopyBeside(*frame);
    *wanted = n;
    return n;
  }
  if (const OutgoingFrame* frame = outgoing_.Unplaced()) {
    outgoing_.Place(stream_->areas()->outgoing->Reserve(TotalBytes(frame->bulk)));
  }
  iovec vectors[kMostVectors];
  const size_t count = outgoing_.Gather(vectors, kMostVectors, wanted);
  return stream_->Send(vectors, count, *wanted < outgoing_.bytes());
}

// Copies and publishes the next piece of the bulk. Copies nothing if the bulk was written there in the first place.
ssize_t TcpConnection::CopyBeside(OutgoingFrame& frame) {
  const MutableByteSpan to = frame.extent.memory();
  const size_t done = outgoing_.PlacedBytes();
  size_t n = to.size();
  if (frame.bulk.front().data() != to.data()) {
    iovec vectors[kMostVectors];
    const size_t count = outgoing_.Gather(vectors, kMostVectors, &n);
    n = 0;
    for (size_t i = 0; i < count && n < kPublishBytes; ++i) {
      const size_t piece = std::min(vectors[i].iov_len, kPublishBytes - n);
      std::memcpy(to.data() + done + n, vectors[i].iov_base, piece);
      n += piece;
    }
  }
  frame.extent.Publish(done + n);
  if (done + n == to.size()) frame.extent.HandOver();
  stream_->Notify();
  return static_cast<ssize_t>(n);
}

void TcpConnection::SetWriteWaiting(bool waiting) {
  if (waiting) Expect(sending_, bytes_sent_);
  if (std::exchange(write_waiting_, waiting) != waiting) {
    stream_->SetInterest({.read = !paused_, .write = write_waiting_});
  }
}

void TcpConnection::OnReady(bool readable, bool writable, bool broken) {
  const std::shared_ptr<TcpConnection> self = shared_from_this();
  if (broken && paused_) {
    Fail(absl::UnavailableError("the peer closed the connection"));
    return;
  }
  if (writable) Flush();
  if (readable || broken) Read();
}

void TcpConnection::SetPaused(bool paused) {
  if (!open() || std::exchange(paused_, paused) == paused) return;
  stream_->SetInterest({.read = !paused_, .write = write_waiting_});
  receiving_.End();
  // Bytes that are staged already cause no event.
  if (!paused) loop_.Post([self = shared_from_this()] { self->Read(); });
}

void TcpConnection::Read() {
  if (reading_) return;
  const std::shared_ptr<TcpConnection> self = shared_from_this();
  reading_ = true;
  bool drained = false;
  size_t turn = 0;
  while (true) {
    while (open() && !paused_ && Parse()) {
    }
    if (!open() || paused_) break;
    const bool beside = part_ == Part::kBulk && header_.beside && stream_->areas()->incoming.HasBytes();
    if ((drained && !beside) || turn > kTurnBytes) {
      if (MidFrame()) Expect(receiving_, bytes_received_);
      break;
    }
    size_t wanted = 0;
    const ssize_t n = Receive(&wanted);
    if (n > 0) {
      bytes_received_ += n;
      owner_->OnMoved(0, n);
      turn += n;
      left_ = nullptr;
      // The end of a bulk part is usually the end of the available bytes, and asking would cost a system call.
      drained = n < wanted || (part_ == Part::kBulk && bulk_.left() == 0);
    } else if (n == 0) {
      Fail(absl::UnavailableError("the peer closed the connection"));
    } else if (errno == EAGAIN) {
      drained = true;
    } else if (errno != EINTR) {
      Fail(NetworkError("receiving", errno), errno == EBADMSG ? Fault::kMalformed : Fault::kLost);
    }
  }
  reading_ = false;
}

// Receives into the place where the next bytes belong. Returns what recv would: -1 with errno, 0 at the end.
ssize_t TcpConnection::Receive(size_t* wanted) {
  if (part_ == Part::kBulk && header_.beside) return ReceiveBeside();
  if (part_ == Part::kBulk) {
    iovec vectors[kMostVectors];
    const size_t count = bulk_.Gather(vectors, kMostVectors, wanted);
    const ssize_t n = stream_->Receive(vectors, count);
    if (n > 0) bulk_.Advance(n);
    return n;
  }
  if (part_ == Part::kControl) {
    *wanted = control_.size() - control_filled_;
    const iovec rest{control_.data() + control_filled_, *wanted};
    const ssize_t n = stream_->Receive(&rest, 1);
    if (n > 0) control_filled_ += n;
    return n;
  }
  std::memmove(staging_.data(), staging_.data() + staged_begin_, staged_end_ - staged_begin_);
  staged_end_ -= std::exchange(staged_begin_, 0);
  *wanted = staging_.size() - staged_end_;
  const iovec rest{staging_.data() + staged_end_, *wanted};
  const ssize_t n = stream_->Receive(&rest, 1);
  if (n > 0) staged_end_ += n;
  return n;
}

// Receives the available part of the bulk beside the stream.
ssize_t TcpConnection::ReceiveBeside() {
  const ByteSpan there = stream_->areas()->incoming.Take(std::min<uint64_t>(bulk_.left(), kTurnBytes));
  if (there.empty()) {
    errno = EAGAIN;
    return stream_->ended() ? 0 : -1;
  }
  bulk_.Take(there);
  return static_cast<ssize_t>(there.size());
}

size_t TcpConnection::TakeStaged(std::byte* to, size_t most) {
  const size_t n = std::min(most, staged_end_ - staged_begin_);
  if (n > 0) std::memcpy(to, staging_.data() + staged_begin_, n);
  staged_begin_ += n;
  return n;
}

// Makes one step with the received bytes. False: more are needed.
bool TcpConnection::Parse() {
  switch (part_) {
    case Part::kHandshake:
      return ParseHandshake();
    case Part::kHeader:
      return ParseHeader();
    case Part::kControl:
      return ParseControl();
    case Part::kPlace:
      return ParsePlace();
    case Part::kBulk:
      return ParseBulk();
  }
  return false;
}

bool TcpConnection::ParseHandshake() {
  Handshake::Step step = handshake_->Advance(ByteSpan(staging_).subspan(staged_begin_, staged_end_ - staged_begin_));
  staged_begin_ += step.used;
  if (step.used > 0 && !std::exchange(greeted_, true)) LimitHandshake(handshake_deadline_);
  const bool sent = !step.to_send.empty();
  if (sent) {
    OutgoingFrame frame;
    frame.bare = true;
    frame.control = std::move(step.to_send);
    Send(std::move(frame));
  }
  if (!step.status.ok()) {
    Fail(std::move(step.status), Fault::kHandshake);
    return false;
  }
  if (step.passed) {
    handshake_ = nullptr;
    agreed_ = step.agreed;
    loop_.CancelTimer(handshake_timer_);
    part_ = Part::kHeader;
    if (open()) owner_->OnReady();
  }
  return step.passed || sent || step.used > 0;
}

bool TcpConnection::ParseHeader() {
  if (staged_end_ - staged_begin_ < kFrameHeaderBytes) return false;
  const std::span<const std::byte, kFrameHeaderBytes> bytes(staging_.data() + staged_begin_, kFrameHeaderBytes);
  absl::StatusOr<FrameHeader> header = DecodeFrameHeader(bytes, limits_);
  if (!header.ok()) {
    Fail(absl::UnavailableError(absl::StrCat("it sent a malformed frame: ", header.status().message())),
         Fault::kMalformed);
    return false;
  }
  staged_begin_ += kFrameHeaderBytes;
  header_ = *header;
  control_.resize(header_.control_bytes);
  control_filled_ = 0;
  part_ = Part::kControl;
  return true;
}

bool TcpConnection::ParseControl() {
  control_filled_ +=
      TakeStaged(reinterpret_cast<std::byte*>(control_.data()) + control_filled_, control_.size() - control_filled_);
  if (control_filled_ < control_.size()) return false;
  part_ = header_.beside ? Part::kPlace : Part::kBulk;
  absl::StatusOr<const MutableSegments*> bulk = owner_->OnFrame(header_, std::exchange(control_, {}));
  if (!bulk.ok()) {
    Fail(bulk.status(), Fault::kMalformed);
    return false;
  }
  bulk_.Begin(*bulk, header_.bulk_bytes);
  return true;
}

bool TcpConnection::ParsePlace() {
  if (staged_end_ - staged_begin_ < kPlaceBytes) return false;
  const uint64_t offset = LoadLittleEndian<uint64_t>(staging_.data() + staged_begin_);
  staged_begin_ += kPlaceBytes;
  IncomingArea& area = stream_->areas()->incoming;
  if (!area.Begin(offset, header_.bulk_bytes)) {
    Fail(absl::UnavailableError("it sent a malformed frame: its bulk isn't in shared memory"), Fault::kMalformed);
    return false;
  }
  if (bulk_.wanted() && owner_->BorrowsBulk()) {
    owner_->OnBorrowed(area.Borrow());
    bulk_.Discard();
  }
  part_ = Part::kBulk;
  return open();
}

bool TcpConnection::ParseBulk() {
  const size_t staged = std::min<uint64_t>(staged_end_ - staged_begin_, bulk_.left());
  if (!header_.beside && staged > 0) {
    bulk_.Take(ByteSpan(staging_).subspan(staged_begin_, staged));
    staged_begin_ += staged;
  }
  if (bulk_.left() > 0) return false;
  EndFrame();
  return true;
}

void TcpConnection::EndFrame() {
  part_ = Part::kHeader;
  bulk_.End();
  if (header_.beside) stream_->areas()->incoming.End();
  receiving_.End();
  owner_->OnFrameEnd();
}

// Begins to measure the progress, unless that has begun already.
void TcpConnection::Expect(Progress& progress, uint64_t bytes) {
  if (!progress.active()) progress.Begin(loop_.Now(), bytes);
  if (progress_timer_set_) return;
  progress_timer_set_ = true;
  progress_timer_ = loop_.CallAt(progress.since() + options_.stall_timeout, [weak = weak_from_this()] {
    if (std::shared_ptr<TcpConnection> self = weak.lock()) self->OnProgressTimer();
  });
}

void TcpConnection::OnProgressTimer() {
  progress_timer_set_ = false;
  // Reads first: bytes that arrived while this process itself was stopped count.
  Read();
  if (!open()) return;
  const absl::Time now = loop_.Now();
  if (receiving_.Stalled(now, bytes_received_, options_.stall_timeout) ||
      sending_.Stalled(now, bytes_sent_, options_.stall_timeout)) {
    Fail(absl::UnavailableError(
             absl::StrCat("a message made no progress for ", absl::FormatDuration(options_.stall_timeout))),
         Fault::kStalled);
    return;
  }
  if (receiving_.active()) Expect(receiving_, bytes_received_);
  if (sending_.active()) Expect(sending_, bytes_sent_);
}

}  // namespace muster
