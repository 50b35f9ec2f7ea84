#include "muster/store/direct/arena_listener.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/net/abstract_address.h"
#include "muster/base/net/accept_again.h"
#include "muster/base/net/descriptor_passing.h"
#include "muster/base/os/uninterrupted.h"
#include "muster/store/direct/attach_message.h"

namespace muster {
namespace {

// A process sends its message at once: it runs on this machine.
constexpr timeval kHelloPatience = {.tv_sec = 1, .tv_usec = 0};
// More than the workers of any cluster; only processes of the same user are counted at all.
constexpr size_t kMostConnections = 1024;

std::string RandomText(size_t digits) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::random_device device;
  std::string text;
  while (text.size() < digits) text.push_back(kDigits[device() % 16]);
  return text;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ArenaListener>> ArenaListener::Open() {
  std::string name = absl::StrCat("muster-", RandomText(32));
  const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int stop = eventfd(0, EFD_CLOEXEC);
  const AbstractAddress address(name);
  if (listener < 0 || stop < 0 || bind(listener, address.get(), address.length) != 0 || listen(listener, 64) != 0) {
    const int error = errno;
    if (listener >= 0) close(listener);
    if (stop >= 0) close(stop);
    return absl::UnavailableError(absl::StrCat("no unix socket for direct apply: ", std::strerror(error)));
  }
  return std::unique_ptr<ArenaListener>(new ArenaListener(std::move(name), listener, stop));
}

std::unique_ptr<ArenaListener> ArenaListener::OpenOrWarn() {
  auto port = Open();
  if (port.ok()) return *std::move(port);
  LogWarning(port.status().message());
  return nullptr;
}

ArenaListener::ArenaListener(std::string name, int listener, int stop)
    : name_(std::move(name)), listener_(listener), stop_(stop), thread_([this] { Serve(); }) {}

ArenaListener::~ArenaListener() {
  eventfd_write(stop_, 1);
  thread_.join();
  for (const int fd : connections_) close(fd);
  const MutexLock lock(mutex_);
  for (const auto& [number, client] : clients_)
    if (client.memory_fd >= 0) close(client.memory_fd);
  close(listener_);
  close(stop_);
}

std::string ArenaListener::IssueTicket(int number, uint64_t incarnation, int memory_fd) {
  const int copy = fcntl(memory_fd, F_DUPFD_CLOEXEC, 3);
  if (copy < 0) return "";
  const MutexLock lock(mutex_);
  Client& client = clients_[number];
  if (client.memory_fd >= 0) close(client.memory_fd);
  client.memory_fd = copy;
  if (client.ticket.empty() || client.incarnation != incarnation) client.ticket = RandomText(kTicketBytes);
  client.incarnation = incarnation;
  return client.ticket;
}

std::optional<ProcessIdentity> ArenaListener::AttachedProcess(int number, const std::string& ticket) const {
  const MutexLock lock(mutex_);
  const auto client = clients_.find(number);
  if (client == clients_.end() || ticket.empty() || client->second.used_ticket != ticket) return std::nullopt;
  return client->second.process;
}

bool ArenaListener::HasLeft(int number, const ProcessIdentity& process) const {
  const MutexLock lock(mutex_);
  const auto client = clients_.find(number);
  return client != clients_.end() && !client->second.used_ticket.empty() && client->second.process == process &&
         client->second.connection < 0;
}

void ArenaListener::Serve() {
  for (;;) {
    // poll ignores descriptor -1.
    std::vector<pollfd> watched = {{stop_, POLLIN, 0}, {accepts_later_ ? -1 : listener_, POLLIN, 0}};
    for (const int fd : connections_) watched.push_back({fd, POLLIN, 0});
    const int patience = accepts_later_ ? static_cast<int>(absl::ToInt64Milliseconds(kAcceptAgainAfter)) : -1;
    const int ready = poll(watched.data(), watched.size(), patience);
    ++turns_;
    if (ready < 0) continue;
    accepts_later_ = false;
    if (watched[0].revents != 0) return;
    // An attached process has nothing more to say: any event means that it is gone.
    for (size_t i = 2; i < watched.size(); ++i) {
      if (watched[i].revents == 0) continue;
      std::erase(connections_, watched[i].fd);
      Close(watched[i].fd);
    }
    if (watched[1].revents != 0) Accept();
  }
}

void ArenaListener::Accept() {
  const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (connection < 0) {
    accepts_later_ = ShouldAcceptLater(errno);
    return;
  }
  if (connections_.size() < kMostConnections && Receive(connection)) {
    connections_.push_back(connection);
  } else {
    Close(connection);
  }
}

void ArenaListener::Close(int connection) {
  const MutexLock lock(mutex_);
  for (auto& [number, client] : clients_)
    if (client.connection == connection) client.connection = -1;
  close(connection);
}

bool ArenaListener::Receive(int connection) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 || peer.uid != geteuid()) return false;
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &kHelloPatience, sizeof kHelloPatience);
  AttachMessage hello;
  const AttachMessage expected;
  if (Uninterrupted([&] { return recv(connection, &hello, sizeof hello, 0); }) != sizeof hello) return false;
  if (std::memcmp(hello.magic, expected.magic, sizeof hello.magic) != 0) return false;
  if (hello.pid_namespace != PidNamespace()) return false;
  const auto process = IdentifyProcess(peer.pid);
  if (!process) return false;
  const int memory_fd = Redeem(std::string(hello.ticket, sizeof hello.ticket), *process, connection);
  if (memory_fd < 0) return false;
  const bool sent = SendDescriptor(connection, memory_fd);
  close(memory_fd);
  return sent;
}

int ArenaListener::Redeem(const std::string& ticket, const ProcessIdentity& process, int connection) {
  const MutexLock lock(mutex_);
  for (auto& [number, client] : clients_) {
    if (client.memory_fd < 0 || client.ticket != ticket) continue;
    client.used_ticket = std::exchange(client.ticket, "");
    client.process = process;
    client.connection = connection;
    return std::exchange(client.memory_fd, -1);
  }
  return -1;
}

}  // namespace muster
