#include "muster/launch/engines/driver/driver_agents.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/clock.h"
#include "muster/base/os/uninterrupted.h"
#include "muster/base/status_macros.h"
#include "muster/launch/agent/rendezvous.h"

namespace muster {
namespace {

// A name that begins with '@' is one of the kernel's own, in the place of a file: unix(7), "abstract".
absl::StatusOr<Socket> ConnectToDriver(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    return absl::UnavailableError("this process isn't in a job that muster has submitted: it has no driver");
  path.copy(address.sun_path, path.size());
  const bool is_abstract = path.front() == '@';
  if (is_abstract) address.sun_path[0] = '\0';
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + (is_abstract ? 0 : 1));
  Socket socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto connected = [&] { return connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address), length); };
  if (!socket.valid() || Uninterrupted(connected) != 0)
    return absl::UnavailableError(absl::StrCat("the job's driver can't be reached at ", path, ": ",
                                               std::string(absl::ErrnoToStatus(errno, "its socket").message())));
  return socket;
}

}  // namespace

DriverAgents::DriverAgents(DriverAgentsOptions options, FdLoop& loop) : options_(std::move(options)), loop_(loop) {}

DriverAgents::~DriverAgents() {
  events_ = nullptr;
  if (!AwaitEnds(options_.patience.by_themselves)) {
    Send(EndAllLine(/*at_once=*/false));
    if (!AwaitEnds(options_.patience.asked)) {
      Send(EndAllLine(/*at_once=*/true));
      AwaitEnds(options_.patience.killed);
    }
  }
  if (socket_.valid()) loop_.Forget(socket_.fd());
}

bool DriverAgents::AwaitEnds(absl::Duration patience) {
  const absl::Time until = RealClock().Now() + patience;
  while (socket_.valid() && !running_.empty() && RealClock().Now() < until) {
    const short wanted = static_cast<short>(unwritten_.empty() ? POLLIN : POLLIN | POLLOUT);
    pollfd ready = {.fd = socket_.fd(), .events = wanted, .revents = 0};
    const absl::Duration left = std::max(until - RealClock().Now(), absl::ZeroDuration());
    if (poll(&ready, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1) > 0) OnReady(ready.revents);
  }
  return running_.empty();
}

absl::Status DriverAgents::Begin(const Meeting& meeting, AgentStarterEvents& events) {
  events_ = &events;
  rendezvous_ = RendezvousText(meeting.rendezvous);
  ASSIGN_OR_RETURN(socket_, ConnectToDriver(options_.socket));
  loop_.Watch(socket_.fd(), POLLIN, [this](short found) { OnReady(found); });
  Send(RendezvousLine(rendezvous_));
  return absl::OkStatus();
}

absl::Status DriverAgents::StartAll(const std::vector<std::string>& hosts) {
  for (const std::string& host : hosts) RETURN_IF_ERROR(StartAgain(host));
  return absl::OkStatus();
}

absl::Status DriverAgents::StartAgain(const std::string& host) {
  if (!socket_.valid()) return absl::UnavailableError(gone_);
  const uint64_t number = ++starts_;
  newest_[host] = number;
  running_.insert(number);
  Send(LineOf({.host = host,
               .number = number,
               .arguments = {"agent", "--serve", options_.job, "--host", host, "--grace",
                             absl::StrCat(absl::ToInt64Seconds(options_.grace))},
               .rendezvous = rendezvous_}));
  return absl::OkStatus();
}

void DriverAgents::EndStart(const std::string& host) {
  if (const auto newest = newest_.find(host); newest != newest_.end()) Send(EndStartLine(newest->second));
}

absl::Status DriverAgents::Explain(const std::string& host, const std::string& said) const {
  if (!socket_.valid()) return absl::FailedPreconditionError(absl::StrCat("the job has ended: ", gone_));
  if (!over_.empty())
    return absl::FailedPreconditionError(absl::StrCat(host, ": no agent can be started there any more: ", over_));
  if (absl::StrContains(said, kCannotReachSupervisor))
    return absl::UnavailableError(absl::StrCat(host, " doesn't reach the supervisor: the nodes must reach each other ",
                                               "at all ports (", said, ")"));
  return absl::UnavailableError(absl::StrCat(host, ": its agent has ended before it connected: ", said));
}

void DriverAgents::Send(const std::string& line) {
  if (!socket_.valid()) return;
  unwritten_ += line;
  Write();
}

void DriverAgents::Write() {
  while (!unwritten_.empty()) {
    const ssize_t put = Uninterrupted(
        [&] { return send(socket_.fd(), unwritten_.data(), unwritten_.size(), MSG_NOSIGNAL | MSG_DONTWAIT); });
    if (put < 0) break;  // it is full, or the end is about to be read
    unwritten_.erase(0, static_cast<size_t>(put));
  }
  loop_.SetEvents(socket_.fd(), static_cast<short>(unwritten_.empty() ? POLLIN : POLLIN | POLLOUT));
}

void DriverAgents::OnReady(short found) {
  if ((found & POLLOUT) != 0) Write();
  if ((found & ~POLLOUT) == 0) return;
  while (socket_.valid() && Read()) continue;
}

bool DriverAgents::Read() {
  std::array<char, 4096> piece;
  const ssize_t got = Uninterrupted([&] { return recv(socket_.fd(), piece.data(), piece.size(), MSG_DONTWAIT); });
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
  if (got <= 0) {
    OnGone("its driver is gone");
    return false;
  }
  unread_.append(piece.data(), static_cast<size_t>(got));
  for (size_t end = unread_.find('\n'); end != std::string::npos; end = unread_.find('\n')) {
    const auto news = ParseDriverNews(unread_.substr(0, end));
    unread_.erase(0, end + 1);
    if (!news.ok()) {
      OnGone(std::string(news.status().message()));
      return false;
    }
    OnNews(*news);
  }
  if (unread_.size() <= kMostDriverLine) return true;
  OnGone("its driver has written a line without an end");
  return false;
}

void DriverAgents::OnNews(const DriverNews& news) {
  if (news.kind == DriverNews::Kind::kEnded) running_.erase(news.number);
  if (news.for_ever) over_ = news.text;
  const auto newest =
      std::find_if(newest_.begin(), newest_.end(), [&news](const auto& start) { return start.second == news.number; });
  if (newest == newest_.end() || events_ == nullptr) return;
  switch (news.kind) {
    case DriverNews::Kind::kLine:
      return events_->OnSaid(newest->first, news.text);
    case DriverNews::Kind::kWaits:
      return events_->OnWaits({newest->first}, absl::StrCat(newest->first, " ", news.text));
    case DriverNews::Kind::kEnded:
      return events_->OnEnded(newest->first, news.text);
  }
}

void DriverAgents::OnGone(const std::string& why) {
  gone_ = why;
  loop_.Forget(socket_.fd());
  socket_.Close();
  running_.clear();
  if (events_ == nullptr) return;
  for (const auto& [host, number] : newest_) events_->OnEnded(host, why);
}

bool EndAllAgents(const std::string& socket, absl::Duration patience) {
  const absl::Time until = RealClock().Now() + patience;
  const absl::StatusOr<Socket> driver = ConnectToDriver(socket);
  const std::string line = EndAllLine(/*at_once=*/true);
  if (!driver.ok() || send(driver->fd(), line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size()))
    return false;
  for (std::string said; RealClock().Now() < until;) {
    pollfd ready = {.fd = driver->fd(), .events = POLLIN, .revents = 0};
    const absl::Duration left = std::max(until - RealClock().Now(), absl::ZeroDuration());
    if (poll(&ready, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1) != 1) continue;
    std::array<char, 4096> piece;
    const ssize_t got = Uninterrupted([&] { return recv(driver->fd(), piece.data(), piece.size(), MSG_DONTWAIT); });
    if (got <= 0) return false;
    said.append(piece.data(), static_cast<size_t>(got));
    for (size_t end = said.find('\n'); end != std::string::npos; end = said.find('\n')) {
      const auto news = ParseDriverNews(said.substr(0, end));
      if (news.ok() && news->kind == DriverNews::Kind::kEnded && news->number == kAllStarts) return true;
      said.erase(0, end + 1);
    }
  }
  return false;
}

}  // namespace muster
