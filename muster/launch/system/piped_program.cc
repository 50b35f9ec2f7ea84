#include "muster/launch/system/piped_program.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/base/os/uninterrupted.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/environment_list.h"
#include "muster/launch/system/awaited_children.h"
#include "muster/launch/system/find_program.h"
#include "muster/launch/system/pid_fd.h"

namespace muster {
namespace {

// The child's end and this process's end of each stream; closes what wasn't taken.
class StreamPipes {
 public:
  ~StreamPipes() {
    for (const std::array<int, 2>& ends : ends_)
      for (const int fd : ends)
        if (fd >= 0) close(fd);
  }
  absl::Status Open() {
    for (std::array<int, 2>& ends : ends_)
      if (pipe2(ends.data(), O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "cannot make a pipe");
    return absl::OkStatus();
  }
  int ChildEnd(int stream) const { return ends_[stream][stream == 0 ? 0 : 1]; }
  int TakeOwnEnd(int stream) { return std::exchange(ends_[stream][stream == 0 ? 1 : 0], -1); }

 private:
  std::array<std::array<int, 2>, 3> ends_ = {{{-1, -1}, {-1, -1}, {-1, -1}}};
};

// What posix_spawn needs, freed at the end.
class SpawnSettings {
 public:
  SpawnSettings(const StreamPipes& pipes, const std::string& directory) {
    posix_spawn_file_actions_init(&actions);
    for (int stream = 0; stream < 3; ++stream)
      posix_spawn_file_actions_adddup2(&actions, pipes.ChildEnd(stream), stream);
    if (!directory.empty()) posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

ExitStatus StatusOf(int wait_status) {
  ExitStatus status;
  if (WIFSIGNALED(wait_status))
    status.signal = WTERMSIG(wait_status);
  else
    status.code = WEXITSTATUS(wait_status);
  return status;
}

}  // namespace

absl::StatusOr<PipedProgram> PipedProgram::Start(const std::vector<std::string>& arguments,
                                                 const std::vector<std::string>& environment,
                                                 const std::string& directory) {
  const std::string& name = arguments.front();
  const bool is_below = !directory.empty() && name.find('/') != std::string::npos && name.front() != '/';
  ASSIGN_OR_RETURN(const std::string file,
                   FindProgram(is_below ? JoinPath(directory, name) : name, VariableIn(environment, "PATH")));
  StreamPipes pipes;
  RETURN_IF_ERROR(pipes.Open());
  const SpawnSettings settings(pipes, directory);
  std::vector<char*> words = Pointers(arguments), variables = Pointers(environment);
  PipedProgram program;
  const int failed =
      posix_spawn(&program.pid_, file.c_str(), &settings.actions, &settings.attributes, words.data(), variables.data());
  if (failed != 0) {
    program.pid_ = 0;
    return absl::ErrnoToStatus(failed, absl::StrCat("cannot execute '", file, "'"));
  }
  for (int stream = 0; stream < 3; ++stream) {
    program.fds_[stream] = pipes.TakeOwnEnd(stream);
    fcntl(program.fds_[stream], F_SETFL, O_NONBLOCK);
  }
  AddAwaitedChild(program.pid_);
  program.end_fd_ = OpenPidFd(program.pid_);
  if (program.end_fd_ < 0) return absl::ErrnoToStatus(errno, "cannot watch a process");
  return program;
}

PipedProgram& PipedProgram::operator=(PipedProgram&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(end_fd_, other.end_fd_);
  std::swap(fds_, other.fds_);
  std::swap(status_, other.status_);
  return *this;
}

PipedProgram::~PipedProgram() {
  if (pid_ != 0) {
    Kill();
    Wait();
  }
  for (int& fd : fds_) Close(fd);
  Close(end_fd_);
}

ExitStatus PipedProgram::Wait() {
  if (pid_ == 0) return status_;
  int wait_status = 0;
  if (Uninterrupted([&] { return waitpid(pid_, &wait_status, 0); }) == pid_) status_ = StatusOf(wait_status);
  RemoveAwaitedChild(pid_);
  pid_ = 0;
  return status_;
}

void PipedProgram::Signal(int number) const {
  if (pid_ != 0) kill(pid_, number);
}

void PipedProgram::SignalAll(int number) const {
  if (pid_ != 0) kill(-pid_, number);
}

void PipedProgram::Kill() {
  if (pid_ != 0) kill(-pid_, SIGKILL);
}

void PipedProgram::Close(int& fd) {
  if (const int closing = std::exchange(fd, -1); closing >= 0) close(closing);
}

}  // namespace muster
