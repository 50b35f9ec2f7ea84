#include "muster/transport/shm/shm_connector.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/net/abstract_address.h"
#include "muster/base/net/descriptor_passing.h"
#include "muster/base/status_macros.h"
#include "muster/transport/io/shared_memory.h"
#include "muster/transport/shm/shm_hello.h"
#include "muster/transport/shm/shm_stream.h"

namespace muster {
namespace {

constexpr size_t kMostNameBytes = 100;

}  // namespace

std::string ShmAddress::Encode() const {
  return std::string(reinterpret_cast<const char*>(nonce.data()), nonce.size()) + socket;
}

std::optional<ShmAddress> ShmAddress::Decode(const std::string& control) {
  ShmAddress address;
  if (control.size() <= address.nonce.size() || control.size() > address.nonce.size() + kMostNameBytes)
    return std::nullopt;
  std::memcpy(address.nonce.data(), control.data(), address.nonce.size());
  address.socket = control.substr(address.nonce.size());
  return address;
}

ShmConnector::ShmConnector(TcpEventLoop& loop, const ShmAddress& address, const SharedMemoryOptions& options,
                           absl::Duration patience, Callback done)
    : loop_(loop), nonce_(address.nonce), options_(options), done_(std::move(done)) {
  const absl::Status connected = Connect(address.socket);
  const absl::Time until = connected.ok() ? loop_.Now() + patience : absl::InfinitePast();
  timer_ = loop_.CallAt(until, [this, connected] {
    End(connected.ok() ? absl::UnavailableError("it took too long to provide shared memory") : connected);
  });
}

ShmConnector::~ShmConnector() {
  loop_.CancelTimer(timer_);
  if (watch_) loop_.poller().Remove(*watch_);
}

absl::Status ShmConnector::Connect(const std::string& socket_name) {
  socket_ = Socket(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const AbstractAddress address(socket_name);
  if (!socket_.valid() || connect(socket_.fd(), address.get(), address.length) != 0) {
    return absl::UnavailableError(absl::StrCat("it is not on this host (", std::strerror(errno), ")"));
  }
  if (!IsSameUser(socket_.fd())) return absl::PermissionDeniedError("it runs as another user");
  ShmHello hello;
  hello.nonce = nonce_;
  if (send(socket_.fd(), &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello) {
    return absl::UnavailableError(absl::StrCat("it provides no shared memory (", std::strerror(errno), ")"));
  }
  watch_ = loop_.poller().Add(socket_.fd(), {.read = true}, this);
  return absl::OkStatus();
}

void ShmConnector::OnReady(bool, bool, bool) { End(Attach()); }

absl::StatusOr<std::unique_ptr<ByteStream>> ShmConnector::Attach() {
  const Socket fd(ReceiveDescriptor(socket_.fd()));
  if (!fd.valid()) return absl::UnavailableError("it provides no shared memory");
  ASSIGN_OR_RETURN(std::shared_ptr<SharedMemory> memory, SharedMemory::Open(fd.fd(), nonce_));
  if (send(socket_.fd(), &kShmReady, 1, MSG_NOSIGNAL) != 1) return absl::UnavailableError("it has gone");
  loop_.poller().Remove(*std::exchange(watch_, std::nullopt));
  return std::make_unique<ShmStream>(loop_.poller(), std::move(socket_), std::move(memory), SharedMemory::Side::kClient,
                                     options_);
}

// The callback may destroy this.
void ShmConnector::End(absl::StatusOr<std::unique_ptr<ByteStream>> result) {
  loop_.CancelTimer(timer_);
  if (watch_) loop_.poller().Remove(*std::exchange(watch_, std::nullopt));
  Callback done = std::move(done_);
  done(std::move(result));
}

}  // namespace muster
