#include "muster/transport/io/acceptor.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "muster/base/net/accept_again.h"

namespace muster {
namespace {

constexpr int kMostInOneTurn = 16;

}  // namespace

Acceptor::Acceptor(TcpEventLoop& loop, int listening, Callback accepted)
    : loop_(loop),
      listening_(listening),
      accepted_(std::move(accepted)),
      watch_(loop.poller().Add(listening, {.read = true}, this)) {}

Acceptor::~Acceptor() {
  loop_.CancelTimer(again_);
  loop_.poller().Remove(watch_);
}

void Acceptor::OnReady(bool, bool, bool) {
  for (int left = kMostInOneTurn; left > 0; --left) {
    Socket connection(accept4(listening_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!connection.valid()) {
      if (ShouldAcceptLater(errno)) WaitAWhile();
      return;
    }
    accepted_(std::move(connection));
  }
}

void Acceptor::WaitAWhile() {
  loop_.poller().Change(watch_, {});
  again_ = loop_.CallAt(loop_.Now() + kAcceptAgainAfter, [this] { loop_.poller().Change(watch_, {.read = true}); });
}

}  // namespace muster
