#include "muster/observe/http_door.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/background_thread.h"
#include "muster/base/clock.h"
#include "muster/base/mutex.h"
#include "muster/base/net/accept_again.h"
#include "muster/base/net/this_host.h"

namespace muster {
namespace {

constexpr int kMostAcceptedInOneTurn = 16;

// Returns the listening socket, or -1.
int ListenAt(const StatusAddress& address) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  const bool brackets = address.host.size() > 2 && address.host.front() == '[' && address.host.back() == ']';
  const std::string host = brackets ? address.host.substr(1, address.host.size() - 2) : address.host;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), absl::StrCat(address.port).c_str(), &hints, &found) != 0) return -1;
  int fd = -1;
  for (const addrinfo* one = found; one != nullptr && fd < 0; one = one->ai_next) {
    fd = socket(one->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int on = 1;
    if (fd < 0) continue;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, one->ai_addr, one->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0) continue;
    close(std::exchange(fd, -1));
  }
  freeaddrinfo(found);
  return fd;
}

int PortOf(const sockaddr_storage& address) {
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

class HttpDoor::Impl {
 public:
  Impl(int listening, const HttpDoorOptions& options);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  const sockaddr_storage& bound() const { return bound_; }

  void Serve(Answer answer);

 private:
  // What a connection waits for.
  enum class Stage {
    kRequest,  // the client's request
    kAnswer,   // the answer, which another thread makes
    kSending,  // the client to read it
    kClosing,  // the client to close: closing first would drop what the client hasn't read, if it has sent more
  };

  struct Connection {
    int fd = -1;
    Stage stage = Stage::kRequest;
    absl::Time until;    // when its patience is over; only in kAnswer there is none
    std::string bytes;   // received, or still to be sent
    bool whole = false;  // the answer includes its body
  };
  using Connections = std::map<uint64_t, Connection>;

  void Run();
  // Lists what to wait for; returns until when. A connection whose answer is being made isn't looked at.
  absl::Time Gather(std::vector<pollfd>& polled, std::vector<uint64_t>& ids) const;
  void Accept();
  // Ends the oldest connection if there is no place for another one. False: all of them wait for answers.
  bool MakeRoom();
  Connections::iterator Oldest(Stage stage);
  void Drop(Connections::iterator connection);
  void Advance(uint64_t id);
  void Receive(Connections::iterator found);
  void SendFinished();
  // Begins to send.
  void Begin(Connections::iterator found, const HttpAnswer& answer);
  void Send(Connections::iterator found);
  void Discard(Connections::iterator found);
  void Wake() const;

  // Constant after Serve.
  const HttpDoorOptions options_;
  const int listening_;
  const int wake_;  // eventfd
  sockaddr_storage bound_ = {};
  Answer answer_;

  // Used by the door's own thread alone.
  Connections connections_;  // by id, so the oldest come first
  uint64_t next_id_ = 1;
  absl::Time now_;
  absl::Time accept_again_ = absl::InfinitePast();  // until then there are no descriptors for another one

  std::atomic<bool> stopping_{false};
  Mutex mutex_;
  std::vector<std::pair<uint64_t, HttpAnswer>> finished_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<std::array<BackgroundThread, 2>> makers_;
  std::thread thread_;
};

HttpDoor::Impl::Impl(int listening, const HttpDoorOptions& options)
    : options_(options), listening_(listening), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  socklen_t size = sizeof bound_;
  getsockname(listening_, reinterpret_cast<sockaddr*>(&bound_), &size);
}

HttpDoor::Impl::~Impl() {
  stopping_.store(true);
  Wake();
  if (thread_.joinable()) thread_.join();
  makers_.reset();
  for (const auto& [id, connection] : connections_) close(connection.fd);
  close(listening_);
  close(wake_);
}

void HttpDoor::Impl::Serve(Answer answer) {
  answer_ = std::move(answer);
  makers_ = std::make_unique<std::array<BackgroundThread, 2>>();
  thread_ = std::thread([this] { Run(); });
}

void HttpDoor::Impl::Run() {
  std::vector<pollfd> polled;
  std::vector<uint64_t> ids;
  while (!stopping_.load()) {
    const absl::Time next = Gather(polled, ids);
    const timespec timeout = absl::ToTimespec(std::max(next - RealClock().Now(), absl::ZeroDuration()));
    if (ppoll(polled.data(), polled.size(), next == absl::InfiniteFuture() ? nullptr : &timeout, nullptr) < 0) continue;
    now_ = RealClock().Now();
    SendFinished();
    for (size_t i = 0; i < ids.size(); ++i)
      if (polled[i + 2].revents != 0) Advance(ids[i]);
    std::erase_if(connections_, [this](const auto& one) {
      if (one.second.until > now_) return false;
      close(one.second.fd);
      return true;
    });
    if (polled[1].revents != 0) Accept();
  }
}

absl::Time HttpDoor::Impl::Gather(std::vector<pollfd>& polled, std::vector<uint64_t>& ids) const {
  const bool accepting = accept_again_ <= RealClock().Now();
  polled = {{wake_, POLLIN, 0}, {accepting ? listening_ : -1, POLLIN, 0}};
  ids.clear();
  absl::Time next = accepting ? absl::InfiniteFuture() : accept_again_;
  for (const auto& [id, connection] : connections_) {
    const bool waits = connection.stage != Stage::kAnswer;
    const auto events = static_cast<short>(connection.stage == Stage::kSending ? POLLOUT : POLLIN);
    polled.push_back({waits ? connection.fd : -1, events, 0});
    ids.push_back(id);
    next = std::min(next, connection.until);
  }
  return next;
}

void HttpDoor::Impl::Accept() {
  for (int left = kMostAcceptedInOneTurn; left > 0; --left) {
    const int fd = accept4(listening_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      if (ShouldAcceptLater(errno)) accept_again_ = now_ + kAcceptAgainAfter;
      return;
    }
    if (!MakeRoom()) {
      close(fd);
      continue;
    }
    const uint64_t id = next_id_++;
    connections_[id] = {.fd = fd, .until = now_ + options_.request_patience};
    Advance(id);  // its request has usually come with it
  }
}

bool HttpDoor::Impl::MakeRoom() {
  if (connections_.size() < options_.max_connections) return true;
  for (const Stage stage : {Stage::kRequest, Stage::kClosing, Stage::kSending}) {
    for (auto oldest = Oldest(stage); oldest != connections_.end(); oldest = Oldest(stage)) {
      const uint64_t id = oldest->first;
      Advance(id);  // what it waits for may have come meanwhile
      const auto still = connections_.find(id);
      if (still == connections_.end()) return true;
      if (still->second.stage != stage) continue;
      Drop(still);
      return true;
    }
  }
  return false;
}

HttpDoor::Impl::Connections::iterator HttpDoor::Impl::Oldest(Stage stage) {
  return std::find_if(connections_.begin(), connections_.end(),
                      [stage](const auto& one) { return one.second.stage == stage; });
}

void HttpDoor::Impl::Drop(Connections::iterator connection) {
  close(connection->second.fd);
  connections_.erase(connection);
}

void HttpDoor::Impl::Advance(uint64_t id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  switch (found->second.stage) {
    case Stage::kRequest:
      return Receive(found);
    case Stage::kSending:
      return Send(found);
    case Stage::kClosing:
      return Discard(found);
    case Stage::kAnswer:
      return;
  }
}

void HttpDoor::Impl::Receive(Connections::iterator found) {
  Connection& connection = found->second;
  std::array<char, 4096> piece;
  const ssize_t n = recv(connection.fd, piece.data(), piece.size(), 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) return Drop(found);
  connection.bytes.append(piece.data(), n);
  const size_t end = std::min(connection.bytes.find("\r\n\r\n"), connection.bytes.find("\n\n"));
  if (end == std::string::npos && connection.bytes.size() <= options_.max_request_bytes) return;
  connection.whole = true;
  if (end > options_.max_request_bytes) return Begin(found, {.status = 431, .body = "the request is too long\n"});
  const auto request = ParseHttpRequest(std::string_view(connection.bytes).substr(0, end));
  if (!request) return Begin(found, {.status = 400, .body = "this is no HTTP request\n"});
  connection.whole = request->method != "HEAD";
  connection.stage = Stage::kAnswer;
  connection.until = absl::InfiniteFuture();
  (*makers_)[found->first % makers_->size()].Run([this, id = found->first, request = *request] {
    if (stopping_.load()) return;
    HttpAnswer answer = answer_(request);
    {
      MutexLock lock(mutex_);
      finished_.emplace_back(id, std::move(answer));
    }
    Wake();
  });
}

void HttpDoor::Impl::SendFinished() {
  uint64_t wakes = 0;
  [[maybe_unused]] const ssize_t got = read(wake_, &wakes, sizeof wakes);
  std::vector<std::pair<uint64_t, HttpAnswer>> finished;
  {
    MutexLock lock(mutex_);
    finished.swap(finished_);
  }
  for (const auto& [id, answer] : finished) Begin(connections_.find(id), answer);
}

void HttpDoor::Impl::Begin(Connections::iterator found, const HttpAnswer& answer) {
  Connection& connection = found->second;
  connection.bytes = EncodeHttpAnswer(answer, connection.whole);
  connection.stage = Stage::kSending;
  connection.until = now_ + options_.answer_patience;
  Send(found);
}

void HttpDoor::Impl::Send(Connections::iterator found) {
  Connection& connection = found->second;
  const ssize_t n = send(connection.fd, connection.bytes.data(), connection.bytes.size(), MSG_NOSIGNAL);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n < 0) return Drop(found);
  connection.bytes.erase(0, n);
  if (!connection.bytes.empty()) return;
  shutdown(connection.fd, SHUT_WR);
  connection.stage = Stage::kClosing;
  connection.until = now_ + options_.request_patience;
}

void HttpDoor::Impl::Discard(Connections::iterator found) {
  std::array<char, 4096> piece;
  const ssize_t n = recv(found->second.fd, piece.data(), piece.size(), 0);
  if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) return;
  Drop(found);
}

void HttpDoor::Impl::Wake() const {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_, &one, sizeof one);
}

HttpDoor::HttpDoor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpDoor::~HttpDoor() = default;

absl::StatusOr<std::unique_ptr<HttpDoor>> HttpDoor::Open(const StatusAddress& address, const HttpDoorOptions& options) {
  const int listening = ListenAt(address);
  if (listening < 0)
    return absl::InvalidArgumentError(
        absl::StrCat("cannot listen at ", address.host, ":", address.port, "; is it in use? 0 takes a free port"));
  return std::unique_ptr<HttpDoor>(new HttpDoor(std::make_unique<Impl>(listening, options)));
}

int HttpDoor::port() const { return PortOf(impl_->bound()); }
bool HttpDoor::is_loopback() const { return IsLoopback(reinterpret_cast<const sockaddr&>(impl_->bound())); }
void HttpDoor::Serve(Answer answer) { impl_->Serve(std::move(answer)); }

}  // namespace muster
