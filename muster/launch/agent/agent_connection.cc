#include "muster/launch/agent/agent_connection.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/os/uninterrupted.h"

namespace muster {
namespace {

constexpr size_t kReadBytes = 64 << 10;

ByteSpan BytesOf(std::string_view text) { return {reinterpret_cast<const std::byte*>(text.data()), text.size()}; }

}  // namespace

std::string TokenOfLocalStream(const std::string& job) { return absl::StrCat("a stream of this user: ", job); }

AgentConnection::AgentConnection(FdLoop& loop, int in_fd, int out_fd, std::unique_ptr<Handshake> handshake,
                                 StreamOwner owner, std::string read_already)
    : loop_(loop), in_(in_fd), out_(out_fd), owner_(std::move(owner)), later_(loop), handshake_(std::move(handshake)) {
  loop_.Watch(in_, POLLIN, [this](short found) { OnReady(found); });
  if (out_ != in_) loop_.Watch(out_, 0, [this](short) { Write(); });
  // A client's handshake speaks first.
  received_ = std::move(read_already);
  later_.Add([this] { Take({}); });
}

AgentConnection::~AgentConnection() {
  if (ended_) return;
  loop_.Forget(in_);
  if (out_ != in_) loop_.Forget(out_);
}

void AgentConnection::OnReady(short found) {
  if ((found & (POLLIN | POLLHUP | POLLERR)) != 0) return Read();
  Write();
}

void AgentConnection::Read() {
  std::array<char, kReadBytes> piece;
  const ssize_t got = Uninterrupted([&] { return read(in_, piece.data(), piece.size()); });
  if (got > 0) return Take(BytesOf({piece.data(), static_cast<size_t>(got)}));
  if (got < 0 && errno == EAGAIN) return Write();
  End(got == 0 ? absl::OutOfRangeError("the other end has closed the stream") : absl::ErrnoToStatus(errno, "read"));
}

void AgentConnection::Take(ByteSpan bytes) {
  absl::Status status;
  if (handshake_ != nullptr) {
    received_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    status = Advance();
  } else {
    status = owner_.take(bytes);
  }
  Write();  // an answer to a broken handshake, too: it tells the other end why
  if (!status.ok()) End(status);
}

absl::Status AgentConnection::Advance() {
  while (handshake_ != nullptr) {
    const Handshake::Step step = handshake_->Advance(BytesOf(received_));
    received_.erase(0, step.used);
    outgoing_ += step.to_send;
    if (!step.status.ok()) return step.status;
    if (!step.passed) {
      if (step.used == 0 && step.to_send.empty()) return absl::OkStatus();
      continue;
    }
    const std::string hellos = handshake_->hellos();
    handshake_.reset();
    owner_.passed(hellos);
  }
  const std::string rest = std::exchange(received_, "");
  return rest.empty() ? absl::OkStatus() : owner_.take(BytesOf(rest));
}

void AgentConnection::Write() {
  while (!ended_) {
    if (written_ == outgoing_.size()) outgoing_.clear(), written_ = 0;
    while (handshake_ == nullptr && outgoing_.size() - written_ < kWrittenAhead) {
      const std::string frame = owner_.next();
      if (frame.empty()) break;
      outgoing_ += frame;
    }
    if (written_ == outgoing_.size()) return WatchForRoom(false);
    const ssize_t put =
        Uninterrupted([&] { return write(out_, outgoing_.data() + written_, outgoing_.size() - written_); });
    // What else is wrong is seen by the next read, or by the link's silence: never from within a call of the owner.
    if (put < 0) return WatchForRoom(errno == EAGAIN);
    written_ += static_cast<size_t>(put);
  }
}

void AgentConnection::WatchForRoom(bool wanted) {
  if (out_ == in_) return loop_.SetEvents(in_, static_cast<short>(wanted ? POLLIN | POLLOUT : POLLIN));
  loop_.SetEvents(out_, static_cast<short>(wanted ? POLLOUT : 0));
}

void AgentConnection::End(const absl::Status& why) {
  if (std::exchange(ended_, true)) return;
  loop_.Forget(in_);
  if (out_ != in_) loop_.Forget(out_);
  const auto ended = owner_.ended;  // a copy: it may destroy this
  ended(why);
}

}  // namespace muster
