#include "muster/transport/tcp/tcp_dialer.h"

#include <sys/socket.h>

#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/transport/io/tcp_address.h"

namespace muster {

class TcpDialer::Attempt final : public std::enable_shared_from_this<Attempt>, public Poller::Watched {
 public:
  Attempt(TcpEventLoop& loop, Callback done) : loop_(loop), done_(std::move(done)) {}

  void Start(const std::string& address, absl::Duration timeout, const NameLookup& lookup) {
    timer_ = loop_.CallAt(loop_.Now() + timeout, [self = shared_from_this(), timeout] {
      self->End(absl::UnavailableError(absl::StrCat("no answer within ", absl::FormatDuration(timeout))));
    });
    const absl::StatusOr<TcpAddress> target = ParseTcpAddress(address);
    if (!target.ok()) {
      loop_.Post([self = shared_from_this(), why = target.status()] { self->End(why); });
      return;
    }
    absl::StatusOr<std::vector<Endpoint>> numeric = Resolve(*target, /*numeric_only=*/true);
    if (numeric.ok()) {
      endpoints_ = *std::move(numeric);
      loop_.Post([self = shared_from_this()] { self->TryNext(); });
      return;
    }
    // Resolves a name on another thread, as that may take seconds. The loop ends that thread before itself.
    loop_.RunInBackground([self = shared_from_this(), &loop = loop_, target = *target, lookup]() mutable {
      absl::StatusOr<std::vector<Endpoint>> found = lookup(target);
      loop.Post([self = std::move(self), found = std::move(found)] {
        if (!found.ok()) {
          self->End(found.status());
        } else {
          self->endpoints_ = *found;
          self->TryNext();
        }
      });
    });
  }

  void GiveUp() {
    done_ = nullptr;
    loop_.CancelTimer(timer_);
    CloseSocket();
  }

 private:
  void End(absl::StatusOr<Socket> result) {
    if (!done_) return;
    const std::shared_ptr<Attempt> self = shared_from_this();
    Callback done = std::move(done_);
    GiveUp();
    done(std::move(result));
  }

  void CloseSocket() {
    if (watch_) loop_.poller().Remove(*watch_);
    watch_.reset();
    socket_.Close();
  }

  // Tries the next endpoint, after the previous one failed with `error_`.
  void TryNext() {
    CloseSocket();
    while (done_ && next_ < endpoints_.size()) {
      const Endpoint& endpoint = endpoints_[next_++];
      socket_ = Socket(socket(endpoint.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      if (socket_.valid() && connect(socket_.fd(), endpoint.get(), endpoint.length) == 0) {
        Connected();
        return;
      }
      error_ = errno;
      if (error_ != EINPROGRESS) continue;
      watch_ = loop_.poller().Add(socket_.fd(), {.write = true}, this);
      return;
    }
    End(absl::UnavailableError(Describe(error_)));
  }

  void OnReady(bool, bool, bool) override {
    const std::shared_ptr<Attempt> self = shared_from_this();
    socklen_t length = sizeof(error_);
    if (getsockopt(socket_.fd(), SOL_SOCKET, SO_ERROR, &error_, &length) != 0) error_ = errno;
    if (error_ == 0) {
      Connected();
    } else {
      TryNext();
    }
  }

  void Connected() {
    // A connect to a free local port may, rarely, get that very port as its own and so reach itself.
    if (LocalEndpoint(socket_.fd()) == RemoteEndpoint(socket_.fd())) {
      error_ = ECONNREFUSED;
      TryNext();
      return;
    }
    if (watch_) loop_.poller().Remove(*watch_);
    watch_.reset();
    End(std::move(socket_));
  }

  TcpEventLoop& loop_;
  Callback done_;  // null once called or given up
  EventLoop::TimerId timer_{};
  std::vector<Endpoint> endpoints_;
  size_t next_ = 0;
  int error_ = 0;
  Socket socket_;
  std::optional<Poller::Id> watch_;
};

TcpDialer::TcpDialer(TcpEventLoop& loop, absl::Duration timeout, NameLookup lookup)
    : loop_(loop), timeout_(timeout), lookup_(std::move(lookup)) {}

TcpDialer::~TcpDialer() {
  if (attempt_) attempt_->GiveUp();
}

void TcpDialer::Dial(const std::string& address, Callback done) {
  if (attempt_) attempt_->GiveUp();
  attempt_ = std::make_shared<Attempt>(loop_, std::move(done));
  attempt_->Start(address, timeout_, lookup_);
}

}  // namespace muster
