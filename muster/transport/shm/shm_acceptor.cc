#include "muster/transport/shm/shm_acceptor.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "muster/base/net/abstract_address.h"
#include "muster/base/net/descriptor_passing.h"
#include "muster/transport/io/poller.h"
#include "muster/transport/io/shared_memory.h"
#include "muster/transport/shm/shm_hello.h"
#include "muster/transport/shm/shm_stream.h"

namespace muster {
namespace {

// Only processes of the same user are counted, and each stays only as long as two messages take.
constexpr size_t kMostHandovers = 256;

}  // namespace

// One client, from its arrival until its frames go through the memory.
class ShmAcceptor::Handover final : private Poller::Watched {
 public:
  Handover(ShmAcceptor& port, Socket socket) : port_(port), socket_(std::move(socket)) {
    watch_ = port_.loop_.poller().Add(socket_.fd(), {.read = true}, this);
    timer_ = port_.loop_.CallAt(port_.loop_.Now() + port_.patience_, [this] { port_.End(this); });
  }
  ~Handover() override {
    port_.loop_.CancelTimer(timer_);
    if (watch_) port_.loop_.poller().Remove(*watch_);
  }

 private:
  void OnReady(bool, bool, bool) override {
    if (memory_ == nullptr ? !TakeHello() : !TakeReady()) port_.End(this);
  }

  bool TakeHello() {
    ShmHello hello;
    const ShmHello expected;
    if (recv(socket_.fd(), &hello, sizeof hello, MSG_DONTWAIT) != sizeof hello ||
        std::memcmp(hello.magic, expected.magic, sizeof hello.magic) != 0)
      return false;
    const auto found = port_.expected_.find(hello.nonce);
    if (found == port_.expected_.end() || std::exchange(found->second.shown, true)) return false;
    absl::StatusOr<SharedMemory::Made> made = SharedMemory::Make(hello.nonce, port_.options_);
    if (!made.ok() || !SendDescriptor(socket_.fd(), made->fd.fd())) return false;
    nonce_ = hello.nonce;
    memory_ = std::move(made->memory);
    return true;
  }

  // Also returns false when all is done: the handover doesn't exist any more.
  bool TakeReady() {
    char byte = 0;
    if (recv(socket_.fd(), &byte, 1, MSG_DONTWAIT) != 1 || byte != kShmReady) return false;
    const auto found = port_.expected_.find(nonce_);
    if (found == port_.expected_.end()) return false;
    Callback moved = std::move(found->second.moved);
    port_.expected_.erase(found);
    port_.loop_.poller().Remove(*std::exchange(watch_, std::nullopt));
    moved(std::make_unique<ShmStream>(port_.loop_.poller(), std::move(socket_), memory_, SharedMemory::Side::kServer,
                                      port_.options_));
    return false;
  }

  ShmAcceptor& port_;
  Socket socket_;
  std::optional<Poller::Id> watch_;
  EventLoop::TimerId timer_{};
  HandshakeNonce nonce_{};
  std::shared_ptr<SharedMemory> memory_;  // null until it was passed
};

absl::StatusOr<std::unique_ptr<ShmAcceptor>> ShmAcceptor::Open(TcpEventLoop& loop, const SharedMemoryOptions& options,
                                                               absl::Duration patience) {
  const HandshakeNonce random = RandomNonce();
  const std::string name = absl::StrCat(
      "muster-shm-",
      absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(random.data()), random.size() / 2)));
  Socket socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const AbstractAddress address(name);
  if (!socket.valid() || bind(socket.fd(), address.get(), address.length) != 0 || listen(socket.fd(), SOMAXCONN) != 0) {
    return absl::UnavailableError(absl::StrCat("no unix socket for shared memory: ", std::strerror(errno)));
  }
  return std::unique_ptr<ShmAcceptor>(new ShmAcceptor(loop, options, patience, name, std::move(socket)));
}

ShmAcceptor::ShmAcceptor(TcpEventLoop& loop, const SharedMemoryOptions& options, absl::Duration patience,
                         std::string name, Socket socket)
    : loop_(loop),
      options_(options),
      patience_(patience),
      name_(std::move(name)),
      socket_(std::move(socket)),
      acceptor_(loop, socket_.fd(), [this](Socket client) { OnAccepted(std::move(client)); }) {}

ShmAcceptor::~ShmAcceptor() = default;

HandshakeNonce ShmAcceptor::Expect(Callback moved) {
  const HandshakeNonce nonce = RandomNonce();
  expected_[nonce].moved = std::move(moved);
  return nonce;
}

void ShmAcceptor::OnAccepted(Socket client) {
  if (handovers_.size() >= kMostHandovers || !IsSameUser(client.fd())) return;
  auto handover = std::make_unique<Handover>(*this, std::move(client));
  Handover* const key = handover.get();
  handovers_[key] = std::move(handover);
}

void ShmAcceptor::End(Handover* handover) {
  const auto found = handovers_.find(handover);
  const std::unique_ptr<Handover> ended = std::move(found->second);
  handovers_.erase(found);
}

}  // namespace muster
