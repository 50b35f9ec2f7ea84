#include "muster/transport/tcp/tcp_connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/transport/tcp/tcp_address.h"

namespace muster {
namespace {

constexpr size_t kMostVectors = 64;
constexpr size_t kScratchBytes = 64 << 10;
// After this much one connection lets the others have their turn.
constexpr size_t kTurnBytes = 4 << 20;

absl::Status NetworkError(const char* what, int error) {
  return absl::UnavailableError(absl::StrCat("the connection broke while ", what, ": ", Describe(error)));
}

}  // namespace

TcpConnection::TcpConnection(TcpEventLoop& loop, Socket socket, const TcpOptions& options,
                             std::unique_ptr<Handshake> handshake, Owner* owner)
    : loop_(loop), options_(options), owner_(owner), socket_(std::move(socket)), handshake_(std::move(handshake)) {}

void TcpConnection::Start() {
  const int on = 1;  // a socket that has broken meanwhile shows at the first read
  setsockopt(socket_.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(socket_.fd(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  watch_ = loop_.poller().Add(socket_.fd(), {.read = true}, this);
  handshake_timer_ = loop_.CallAt(loop_.Now() + options_.handshake_timeout, [weak = weak_from_this()] {
    if (std::shared_ptr<TcpConnection> self = weak.lock()) {
      self->Fail(absl::UnavailableError("the handshake took too long"), Fault::kHandshake);
    }
  });
  Read();
}

void TcpConnection::Close() {
  if (owner_ == nullptr) return;
  owner_ = nullptr;
  CloseSocket();
  outgoing_.Clear();
}

void TcpConnection::CloseSocket() {
  loop_.CancelTimer(handshake_timer_);
  loop_.CancelTimer(progress_timer_);
  bulk_ = nullptr;
  if (watch_) loop_.poller().Remove(*watch_);
  watch_.reset();
  socket_.Close();
}

void TcpConnection::Fail(absl::Status why, Fault fault) {
  if (!open()) return;
  failed_ = true;
  CloseSocket();
  loop_.Post([self = shared_from_this(), why = std::move(why), fault] {
    if (Owner* owner = std::exchange(self->owner_, nullptr)) owner->OnClosed(why, fault);
    self->outgoing_.Clear();
  });
}

void TcpConnection::Send(OutgoingFrame frame) {
  if (owner_ == nullptr) return;
  outgoing_.Push(std::move(frame));
  if (!write_waiting_) Flush();
}

void TcpConnection::Flush() {
  if (flushing_ || !open()) return;
  const std::shared_ptr<TcpConnection> self = shared_from_this();
  flushing_ = true;
  std::vector<OutgoingFrame> done = std::move(done_);
  size_t turn = 0;
  while (open() && !outgoing_.empty()) {
    iovec vectors[kMostVectors];
    size_t wanted = 0;
    msghdr message{};
    message.msg_iov = vectors;
    message.msg_iovlen = outgoing_.Gather(vectors, kMostVectors, &wanted);
    const int more = wanted < outgoing_.bytes() ? MSG_MORE : 0;
    const ssize_t n = sendmsg(socket_.fd(), &message, MSG_NOSIGNAL | more);
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) {
        SetWriteWaiting(true);
      } else {
        Fail(NetworkError("sending", errno));
      }
      break;
    }
    bytes_sent_ += n;
    turn += n;
    outgoing_.Advance(n, done);
    if (!done.empty() && done.back().cut) Fail(absl::UnavailableError("the connection was cut by a scripted fault"));
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
  done.clear();  // may lead back here
  done_ = std::move(done);
  if (some && open()) owner_->OnSent();
}

void TcpConnection::SetWriteWaiting(bool waiting) {
  if (waiting) Expect(sending_, bytes_sent_);
  if (std::exchange(write_waiting_, waiting) != waiting) {
    loop_.poller().Change(*watch_, {.read = !paused_, .write = write_waiting_});
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
  loop_.poller().Change(*watch_, {.read = !paused_, .write = write_waiting_});
  receiving_.End();
  // What is staged already makes no event.
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
    if (drained || turn > kTurnBytes) {
      if (MidFrame()) Expect(receiving_, bytes_received_);
      break;
    }
    size_t wanted = 0;
    const ssize_t n = Receive(&wanted);
    if (n > 0) {
      bytes_received_ += n;
      turn += n;
      // The end of a bulk part mostly is the end of what there is, and asking would cost a system call.
      drained = n < wanted || (part_ == Part::kBulk && bulk_left_ == 0);
    } else if (n == 0) {
      Fail(absl::UnavailableError("the peer closed the connection"));
    } else if (errno == EAGAIN) {
      drained = true;
    } else if (errno != EINTR) {
      Fail(NetworkError("receiving", errno));
    }
  }
  reading_ = false;
}

// Into the place where the next bytes belong. As recv: -1 with errno, 0 at the end.
ssize_t TcpConnection::Receive(size_t* wanted) {
  const int fd = socket_.fd();
  if (part_ == Part::kBulk) {
    iovec vectors[kMostVectors];
    msghdr message{};
    message.msg_iov = vectors;
    message.msg_iovlen = GatherBulk(vectors, kMostVectors, wanted);
    const ssize_t n = recvmsg(fd, &message, 0);
    if (n > 0) AdvanceBulk(n);
    return n;
  }
  if (part_ == Part::kControl) {
    *wanted = control_.size() - control_filled_;
    const ssize_t n = recv(fd, control_.data() + control_filled_, *wanted, 0);
    if (n > 0) control_filled_ += n;
    return n;
  }
  std::memmove(staging_.data(), staging_.data() + staged_begin_, staged_end_ - staged_begin_);
  staged_end_ -= std::exchange(staged_begin_, 0);
  *wanted = staging_.size() - staged_end_;
  const ssize_t n = recv(fd, staging_.data() + staged_end_, *wanted, 0);
  if (n > 0) staged_end_ += n;
  return n;
}

size_t TcpConnection::TakeStaged(std::byte* to, size_t most) {
  const size_t n = std::min(most, staged_end_ - staged_begin_);
  if (n > 0) std::memcpy(to, staging_.data() + staged_begin_, n);
  staged_begin_ += n;
  return n;
}

// One step with what has been received. False: more is needed.
bool TcpConnection::Parse() {
  switch (part_) {
    case Part::kHandshake:
      return ParseHandshake();
    case Part::kHeader:
      return ParseHeader();
    case Part::kControl:
      return ParseControl();
    case Part::kBulk:
      return ParseBulk();
  }
  return false;
}

bool TcpConnection::ParseHandshake() {
  Handshake::Step step = handshake_->Advance(ByteSpan(staging_).subspan(staged_begin_, staged_end_ - staged_begin_));
  staged_begin_ += step.used;
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
    loop_.CancelTimer(handshake_timer_);
    part_ = Part::kHeader;
    if (open()) owner_->OnReady();
  }
  return step.passed || sent || step.used > 0;
}

bool TcpConnection::ParseHeader() {
  if (staged_end_ - staged_begin_ < kFrameHeaderBytes) return false;
  const std::span<const std::byte, kFrameHeaderBytes> bytes(staging_.data() + staged_begin_, kFrameHeaderBytes);
  absl::StatusOr<FrameHeader> header = DecodeFrameHeader(bytes, options_.limits);
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
  bulk_left_ = header_.bulk_bytes;
  bulk_segment_ = 0;
  bulk_offset_ = 0;
  part_ = Part::kBulk;
  absl::StatusOr<const MutableSegments*> bulk = owner_->OnFrame(header_, std::exchange(control_, {}));
  if (!bulk.ok()) {
    Fail(bulk.status(), Fault::kMalformed);
    return false;
  }
  bulk_ = *bulk;
  return true;
}

bool TcpConnection::ParseBulk() {
  while (bulk_left_ > 0 && staged_begin_ < staged_end_) {
    iovec vector;
    size_t wanted = 0;
    GatherBulk(&vector, 1, &wanted);
    AdvanceBulk(TakeStaged(static_cast<std::byte*>(vector.iov_base), wanted));
  }
  if (bulk_left_ > 0) return false;
  EndFrame();
  return true;
}

void TcpConnection::EndFrame() {
  part_ = Part::kHeader;
  bulk_ = nullptr;
  receiving_.End();
  scratch_ = {};
  owner_->OnFrameEnd();
}

size_t TcpConnection::GatherBulk(iovec* vectors, size_t most, size_t* wanted) {
  if (bulk_ == nullptr) {
    scratch_.resize(kScratchBytes);
    *wanted = std::min<uint64_t>(bulk_left_, scratch_.size());
    vectors[0] = {scratch_.data(), *wanted};
    return 1;
  }
  size_t count = 0;
  size_t total = 0;
  size_t offset = bulk_offset_;
  for (size_t s = bulk_segment_; s < bulk_->size() && count < most && total < bulk_left_; ++s, offset = 0) {
    const MutableByteSpan segment = (*bulk_)[s].subspan(offset);
    const size_t n = std::min<uint64_t>(segment.size(), bulk_left_ - total);
    if (n == 0) continue;
    vectors[count++] = {segment.data(), n};
    total += n;
  }
  *wanted = total;
  return count;
}

void TcpConnection::AdvanceBulk(size_t bytes) {
  bulk_left_ -= bytes;
  if (bulk_ == nullptr) return;
  bulk_offset_ += bytes;
  while (bulk_segment_ < bulk_->size() && bulk_offset_ >= (*bulk_)[bulk_segment_].size()) {
    bulk_offset_ -= (*bulk_)[bulk_segment_].size();
    ++bulk_segment_;
  }
}

// Begins to measure, if it isn't being measured.
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
  // What has come in while this process itself was stopped counts.
  Read();
  if (!open()) return;
  const absl::Time now = loop_.Now();
  if (receiving_.Stalled(now, bytes_received_, options_.stall_timeout) ||
      sending_.Stalled(now, bytes_sent_, options_.stall_timeout)) {
    Fail(absl::UnavailableError(
             absl::StrCat("a message didn't get on for ", absl::FormatDuration(options_.stall_timeout))),
         Fault::kStalled);
    return;
  }
  if (receiving_.active()) Expect(receiving_, bytes_received_);
  if (sending_.active()) Expect(sending_, bytes_sent_);
}

}  // namespace muster
