#include "muster/transport/shm/shm_stream.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

namespace muster {
namespace {

// Bits of the word that says why a side sleeps.
constexpr uint32_t kWantsBytes = 1;
constexpr uint32_t kWantsRoom = 2;

constexpr char kWake = 3;

SharedMemory::Side Other(SharedMemory::Side side) {
  return side == SharedMemory::Side::kClient ? SharedMemory::Side::kServer : SharedMemory::Side::kClient;
}

}  // namespace

ShmStream::ShmStream(Poller& poller, Socket socket, std::shared_ptr<const SharedMemory> memory, SharedMemory::Side side,
                     const SharedMemoryOptions& options)
    : poller_(poller),
      socket_(std::move(socket)),
      memory_(std::move(memory)),
      my_sleep_(memory_->sleep(side)),
      peers_sleep_(memory_->sleep(Other(side))),
      outgoing_(memory_->ring_to(Other(side))),
      incoming_(memory_->ring_to(side)),
      areas_{.outgoing = std::make_shared<OutgoingArea>(memory_, memory_->area_to(Other(side))),
             .incoming = IncomingArea(memory_, memory_->area_to(side)),
             .least_beside = options.least_beside} {}

ShmStream::~ShmStream() { Stop(); }

void ShmStream::Stop() {
  if (std::exchange(user_, nullptr) == nullptr) return;
  poller_.RemoveMemory(this);
  if (watch_) poller_.Remove(*watch_);
  watch_.reset();
}

void ShmStream::Start(Poller::Interest interest, Poller::Watched* user) {
  interest_ = interest;
  user_ = user;
  poller_.AddMemory(this);
  watch_ = poller_.Add(socket_.fd(), {.read = true}, this);
}

ssize_t ShmStream::Send(const iovec* vectors, size_t count, bool) {
  const ssize_t n = outgoing_.Write(vectors, count);
  if (n > 0) {
    WakePeer(kWantsBytes);
    return n;
  }
  errno = n == 0 ? EAGAIN : EBADMSG;
  return -1;
}

ssize_t ShmStream::Receive(const iovec* vectors, size_t count) {
  const ssize_t n = incoming_.Read(vectors, count);
  if (n > 0) {
    WakePeer(kWantsRoom);
    return n;
  }
  if (n == 0 && ended_) return 0;
  errno = n == 0 ? EAGAIN : EBADMSG;
  return -1;
}

void ShmStream::WakePeer(uint32_t wants) {
  if ((peers_sleep_.load() & wants) == 0) return;
  peers_sleep_.store(0);
  // This may fail because a wake-up is already on its way, or because the peer is gone.
  [[maybe_unused]] const ssize_t n = send(socket_.fd(), &kWake, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool ShmStream::Readable() const {
  if (!interest_.read) return false;
  return ended_ || (areas_.incoming.active() ? areas_.incoming.HasBytes() : incoming_.HasBytes());
}

bool ShmStream::Ready() const { return Readable() || Writable(); }

void ShmStream::OnReady() { user_->OnReady(Readable(), Writable(), /*broken=*/false); }

void ShmStream::SetAsleep(bool asleep) {
  my_sleep_.store(!asleep ? 0 : interest_.write ? kWantsBytes | kWantsRoom : kWantsBytes);
}

void ShmStream::OnReady(bool, bool, bool) {
  std::array<char, 64> bytes{};
  ssize_t n = 0;
  do {
    n = recv(socket_.fd(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  } while (n == 1 && bytes[0] == kWake);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  // End of file, or bytes that the protocol doesn't have here, which is treated the same.
  poller_.Remove(*watch_);
  watch_.reset();
  ended_ = true;
  if (!interest_.read) user_->OnReady(false, false, /*broken=*/true);
}

}  // namespace muster
