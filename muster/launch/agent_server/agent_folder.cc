#include "muster/launch/agent_server/agent_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "muster/base/clock.h"
#include "muster/base/status_macros.h"
#include "muster/base/write_error.h"

namespace muster {
namespace {

constexpr char kSocketName[] = "socket";
constexpr char kIdName[] = "id";
constexpr int kBacklog = 64;
constexpr size_t kMostLetters = 64;
constexpr int kConnectSeconds = 10;  // if an agent is stopped, and so many wait already

// Names the socket by the folder's descriptor: short enough however long the path is, and always in that folder.
sockaddr_un AddressIn(int folder) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = absl::StrCat("/proc/self/fd/", folder, "/", kSocketName);
  std::memcpy(address.sun_path, path.data(), std::min(path.size(), sizeof address.sun_path - 1));
  return address;
}

// Polls, because flock has no timeout.
bool LockWithin(int fd, absl::Time deadline) {
  absl::Duration pause = absl::Milliseconds(1);
  while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (RealClock().Now() >= deadline) return false;
    absl::SleepFor(pause);
    pause = std::min(2 * pause, absl::Milliseconds(20));
  }
  return true;
}

absl::Status WithWayOut(const absl::Status& status) {
  if (!absl::IsFailedPrecondition(status)) return status;
  return absl::FailedPreconditionError(
      absl::StrCat("an agent's folder must be its user's alone, and ", status.message(), ": remove it"));
}

}  // namespace

absl::Status CheckAgentJob(const std::string& job) {
  const bool valid = !job.empty() && job.size() <= kMostLetters && std::all_of(job.begin(), job.end(), [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '-';
  });
  if (valid) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("'", job, "' is no job; accepted: 1 to ", kMostLetters, " letters, digits and '-'"));
}

absl::StatusOr<AgentFolder> AgentFolder::Open(const std::string& job, const std::string& shared) {
  RETURN_IF_ERROR(CheckAgentJob(job));
  ASSIGN_OR_RETURN(const PrivateFolder place, PrivateFolder::OpenShared(shared));
  const absl::StatusOr<PrivateFolder> own = place.OpenIn(absl::StrCat("muster-", geteuid()), /*make=*/true);
  if (!own.ok()) return WithWayOut(own.status());
  absl::StatusOr<PrivateFolder> agents = own->OpenIn("agents", /*make=*/true);
  if (!agents.ok()) return WithWayOut(agents.status());
  return AgentFolder(*std::move(agents), job);
}

absl::StatusOr<std::vector<std::string>> AgentFolder::Jobs(const std::string& shared) {
  ASSIGN_OR_RETURN(const AgentFolder any, Open("any", shared));
  std::vector<std::string> jobs;
  std::error_code error;
  const std::string agents = absl::StrCat("/proc/self/fd/", any.agents_.fd());
  for (std::filesystem::directory_iterator entry(agents, error), end; !error && entry != end; entry.increment(error))
    if (std::string job = entry->path().filename(); entry->is_directory(error) && CheckAgentJob(job).ok())
      jobs.push_back(std::move(job));
  std::sort(jobs.begin(), jobs.end());
  return jobs;
}

absl::StatusOr<std::vector<std::string>> AgentFolder::PlacesOf(const std::string& job, const std::string& shared) {
  ASSIGN_OR_RETURN(std::vector<std::string> places, Jobs(shared));
  const std::string numbered = job + "-";
  const auto is_another = [&](const std::string& place) { return place != job && !absl::StartsWith(place, numbered); };
  places.erase(std::remove_if(places.begin(), places.end(), is_another), places.end());
  return places;
}

absl::Status AgentFolder::Lock(absl::Duration wait) {
  const absl::Time deadline = RealClock().Now() + wait;
  while (true) {
    const absl::StatusOr<PrivateFolder> folder = agents_.OpenIn(job_, /*make=*/true);
    if (!folder.ok()) return WithWayOut(folder.status());
    if (!LockWithin(folder->fd(), deadline))
      return absl::UnavailableError(absl::StrCat("the agent of job ", job_,
                                                 " lives, or its guard still ends its tasks (", PathOf(""),
                                                 " is locked); try again when they are gone. Hosts that share this "
                                                 "folder can't have an agent each: it must be on a disk of their own"));
    struct stat locked, there;
    if (fstat(folder->fd(), &locked) != 0 || fstatat(agents_.fd(), job_.c_str(), &there, AT_SYMLINK_NOFOLLOW) != 0 ||
        locked.st_ino != there.st_ino)
      continue;  // an agent that has ended has removed it meanwhile
    // The lock belongs to the opened folder, of which this is a second descriptor.
    locked_ = Socket(fcntl(folder->fd(), F_DUPFD_CLOEXEC, 3));
    return locked_.valid() ? absl::OkStatus() : absl::ErrnoToStatus(errno, "cannot keep a lock");
  }
}

absl::StatusOr<Socket> AgentFolder::Listen() const {
  Socket listening(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  unlinkat(lock_fd(), kSocketName, 0);
  const sockaddr_un address = AddressIn(lock_fd());
  if (!listening.valid() || bind(listening.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(listening.fd(), kBacklog) != 0)
    return WriteError(errno, absl::StrCat("cannot listen on ", PathOf(kSocketName)));
  return listening;
}

absl::StatusOr<Socket> AgentFolder::Connect() const {
  const absl::StatusOr<PrivateFolder> folder = agents_.OpenIn(job_, /*make=*/false);
  if (!folder.ok()) return WithWayOut(folder.status());
  Socket connection(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience = {.tv_sec = kConnectSeconds};
  setsockopt(connection.fd(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const sockaddr_un address = AddressIn(folder->fd());
  if (connection.valid() && connect(connection.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    return connection;
  if (errno == ENOENT || errno == ECONNREFUSED)
    return absl::NotFoundError(absl::StrCat("no agent of job ", job_, " listens"));
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot connect to ", PathOf(kSocketName)));
}

absl::StatusOr<Socket> AgentFolder::OpenLog() const {
  const absl::StatusOr<PrivateFolder> folder = agents_.OpenIn(job_, /*make=*/true);
  if (!folder.ok()) return WithWayOut(folder.status());
  Socket log(openat(folder->fd(), kLogName, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!log.valid()) return WriteError(errno, absl::StrCat("cannot write ", PathOf(kLogName)));
  return log;
}

absl::StatusOr<std::string> AgentFolder::AgentId() const {
  const Socket file(openat(lock_fd(), kIdName, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!file.valid() && errno == ENOENT) return "";
  char id[kMostLetters] = {};
  const ssize_t got = file.valid() ? read(file.fd(), id, sizeof id) : -1;
  if (got < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", PathOf(kIdName)));
  return std::string(id, static_cast<size_t>(got));
}

absl::Status AgentFolder::SetAgentId(const std::string& id) const {
  const Socket file(openat(lock_fd(), kIdName, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid() || pwrite(file.fd(), id.data(), id.size(), 0) != static_cast<ssize_t>(id.size()))
    return WriteError(errno, absl::StrCat("cannot write ", PathOf(kIdName)));
  return absl::OkStatus();
}

std::string AgentFolder::PathOf(const std::string& file) const {
  return absl::StrCat(agents_.path(), "/", job_, file.empty() ? "" : "/", file);
}

absl::Status AgentFolder::LockStart(absl::Duration wait) const {
  if (LockWithin(agents_.fd(), RealClock().Now() + wait)) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("another muster starts an agent for ", absl::FormatDuration(wait),
                                             " already (", agents_.path(), " is locked); end it, or try again"));
}

void AgentFolder::Remove(bool all) const {
  unlinkat(lock_fd(), kSocketName, 0);
  if (!all) return;
  for (const char* name : {kLogName, kClusterName, "cluster.new", kHeardName, kIdName}) unlinkat(lock_fd(), name, 0);
  unlinkat(agents_.fd(), job_.c_str(), AT_REMOVEDIR);
}

}  // namespace muster
