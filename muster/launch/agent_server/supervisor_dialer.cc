#include "muster/launch/agent_server/supervisor_dialer.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/os/uninterrupted.h"
#include "muster/launch/agent/rendezvous.h"

namespace muster {
namespace {

constexpr absl::Duration kFirstDialPause = absl::Milliseconds(50);
constexpr absl::Duration kLongestDialPause = absl::Seconds(2);

}  // namespace

SupervisorDialer::SupervisorDialer(SupervisorDialerOptions options, FdLoop& loop, const Clock& clock)
    : options_(std::move(options)),
      loop_(loop),
      clock_(clock),
      pause_(kFirstDialPause, kLongestDialPause),
      dial_at_(absl::InfinitePast()) {}

SupervisorDialer::~SupervisorDialer() {
  if (dialing_.valid()) loop_.Forget(dialing_.fd());
}

void SupervisorDialer::DialAgain(bool was_of_use) {
  if (was_of_use) pause_.Reset();
  dial_at_ = clock_.Now() + Pause();
}

absl::Duration SupervisorDialer::Pause() {
  const absl::Duration most = pause_.Next();
  uint16_t random = 0;
  if (getrandom(&random, sizeof random, 0) != sizeof random) return most;
  return most / 2 + most / 2 * (random / 65536.0);
}

absl::Time SupervisorDialer::deadline() const { return std::min(dial_at_, give_up_at_); }

void SupervisorDialer::OnTime() {
  const absl::Time now = clock_.Now();
  if (now >= give_up_at_) Failed(absl::StrCat("no answer within ", absl::FormatDuration(kPatience)));
  if (now >= dial_at_) Begin();
}

void SupervisorDialer::Begin() {
  dial_at_ = absl::InfiniteFuture();
  absl::StatusOr<Rendezvous> rendezvous = ReadRendezvous(options_.rendezvous);
  addresses_.clear();
  address_ = options_.rendezvous;
  if (!rendezvous.ok()) return Failed(std::string(rendezvous.status().message()));
  key_ = KeyOfHost(rendezvous->secret, options_.host);
  addresses_.assign(rendezvous->addresses.rbegin(), rendezvous->addresses.rend());
  TryNext();
}

void SupervisorDialer::TryNext() {
  address_ = addresses_.back();
  addresses_.pop_back();
  const absl::StatusOr<TcpAddress> address = ParseTcpAddress(address_);
  if (!address.ok()) return Failed(std::string(address.status().message()));
  if (!Resolve(*address, /*numeric_only=*/true).ok()) return LookUp(address->host, address->port);
  Dial(address_);
}

void SupervisorDialer::LookUp(const std::string& host, const std::string& port) {
  auto started = NameLookup::Start(
      options_.lookup, host, loop_, [this, port](const absl::StatusOr<std::vector<std::string>>& found) {
        const std::unique_ptr<NameLookup> ended = std::move(lookup_);
        if (!found.ok()) return Failed(std::string(found.status().message()));
        // A pod that was made again may have two for a while.
        const std::string& one = (*found)[lookups_++ % found->size()];
        const absl::StatusOr<TcpAddress> address = ParseTcpAddress(one);
        if (!address.ok()) return Failed(std::string(address.status().message()));
        const bool is_v6 = address->host.find(':') != std::string::npos;
        Dial(is_v6 ? absl::StrCat("[", address->host, "]:", port) : absl::StrCat(address->host, ":", port));
      });
  if (!started.ok()) return Failed(std::string(started.status().message()));
  lookup_ = *std::move(started);
  give_up_at_ = clock_.Now() + kLookupPatience;
}

void SupervisorDialer::Dial(const std::string& text) {
  const absl::StatusOr<TcpAddress> address = ParseTcpAddress(text);
  if (!address.ok()) return Failed(std::string(address.status().message()));
  const absl::StatusOr<std::vector<Endpoint>> endpoints = Resolve(*address, /*numeric_only=*/true);
  if (!endpoints.ok()) return Failed(std::string(endpoints.status().message()));
  const Endpoint& endpoint = endpoints->front();
  dialing_ = Socket(socket(endpoint.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!dialing_.valid()) return Failed(Describe(errno));
  const int yes = 1;
  setsockopt(dialing_.fd(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  loop_.Watch(dialing_.fd(), POLLOUT, [this](short) { OnWritable(); });
  give_up_at_ = clock_.Now() + kPatience;
  if (connect(dialing_.fd(), endpoint.get(), endpoint.length) != 0 && errno != EINPROGRESS) Failed(Describe(errno));
}

void SupervisorDialer::OnWritable() {
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(dialing_.fd(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return Failed(Describe(error));
  const std::string greeting = GreetingOf(options_.host, key_);
  const ssize_t put =
      Uninterrupted([&] { return send(dialing_.fd(), greeting.data(), greeting.size(), MSG_NOSIGNAL); });
  if (put != static_cast<ssize_t>(greeting.size())) return Failed("it takes no greeting");
  loop_.Forget(dialing_.fd());
  give_up_at_ = absl::InfiniteFuture();
  told_.clear();
  options_.connected(std::move(dialing_), key_);
}

void SupervisorDialer::Failed(const std::string& why) {
  if (dialing_.valid()) loop_.Forget(dialing_.fd());
  dialing_.Close();
  lookup_.reset();
  give_up_at_ = absl::InfiniteFuture();
  const std::string line = absl::StrCat("can't reach the supervisor at ", address_, ": ", why);
  if (std::exchange(told_[address_], line) != line && options_.log) options_.log(line);
  if (!addresses_.empty()) return TryNext();
  dial_at_ = clock_.Now() + Pause();
}

}  // namespace muster
