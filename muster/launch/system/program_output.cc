#include "muster/launch/system/program_output.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/clock.h"
#include "muster/base/os/uninterrupted.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

// As much as a pipe can hold: all that a program has left in it, and no more of one that writes without end.
constexpr size_t kMostOfDrain = size_t{1} << 20;

// Reads what is there. Returns false at the end.
bool TakeOutput(int fd, std::string& kept, size_t most) {
  size_t read_now = 0;
  while (read_now < kMostOfDrain) {
    std::array<char, 8192> piece;
    const ssize_t got = Uninterrupted([&] { return read(fd, piece.data(), piece.size()); });
    if (got < 0) return errno == EAGAIN;
    if (got == 0) return false;
    read_now += static_cast<size_t>(got);
    kept.append(piece.data(), std::min(static_cast<size_t>(got), most - std::min(most, kept.size())));
  }
  return true;
}

// Keeps SIGPIPE from this thread while it lives: a program may end without having read its input.
class WithoutBrokenPipe {
 public:
  WithoutBrokenPipe() {
    sigemptyset(&broken_);
    sigaddset(&broken_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &broken_, &before_);
  }
  ~WithoutBrokenPipe() {
    const timespec at_once = {};
    if (sigismember(&before_, SIGPIPE) == 0)
      while (sigtimedwait(&broken_, nullptr, &at_once) > 0) continue;
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WithoutBrokenPipe(const WithoutBrokenPipe&) = delete;
  WithoutBrokenPipe& operator=(const WithoutBrokenPipe&) = delete;

 private:
  sigset_t broken_, before_;
};

// Writes what it takes now. Returns false once all is written, or nobody reads.
bool GiveInput(int fd, const std::string& input, size_t& given) {
  const WithoutBrokenPipe quiet;
  while (given < input.size()) {
    const ssize_t put = Uninterrupted([&] { return write(fd, input.data() + given, input.size() - given); });
    if (put < 0) return errno == EAGAIN;
    given += static_cast<size_t>(put);
  }
  return false;
}

}  // namespace

absl::StatusOr<AwaitedProgram> AwaitedProgram::Start(const std::vector<std::string>& words,
                                                     const std::vector<std::string>& environment,
                                                     absl::Duration patience, const ProgramDialog& dialog) {
  ASSIGN_OR_RETURN(PipedProgram program, PipedProgram::Start(words, environment));
  AwaitedProgram awaited(std::move(program), words.front(), patience, dialog);
  awaited.Give();
  return awaited;
}

AwaitedProgram::AwaitedProgram(PipedProgram program, std::string name, absl::Duration patience,
                               const ProgramDialog& dialog)
    : program_(std::move(program)),
      name_(std::move(name)),
      patience_(patience),
      until_(RealClock().Now() + patience),
      dialog_(dialog) {}

void AwaitedProgram::Give() {
  if (program_.stdin_fd() >= 0 && !GiveInput(program_.stdin_fd(), dialog_.input, given_)) program_.CloseStdin();
}

absl::StatusOr<ProgramOutput> AwaitedProgram::Wait() {
  ProgramOutput output;
  pollfd fds[] = {{program_.stdout_fd(), POLLIN, 0},
                  {program_.stderr_fd(), POLLIN, 0},
                  {program_.end_fd(), POLLIN, 0},
                  {program_.stdin_fd(), POLLOUT, 0}};
  while (fds[2].revents == 0) {
    const absl::Duration left = until_ - RealClock().Now();
    if (left <= absl::ZeroDuration()) {
      program_.Kill();
      static_cast<void>(program_.Wait());
      return absl::DeadlineExceededError(
          absl::StrCat(name_, " hasn't answered within ", absl::FormatDuration(patience_)));
    }
    const int ready =
        poll(fds, 4, static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1)))));
    if (ready < 0 && errno != EINTR) break;
    if (fds[3].revents != 0) {
      Give();
      fds[3].fd = program_.stdin_fd();
    }
    if (fds[0].revents != 0 && !TakeOutput(fds[0].fd, output.out, dialog_.most_kept)) fds[0].fd = -1;
    if (fds[1].revents != 0 && !TakeOutput(fds[1].fd, output.err, dialog_.most_kept)) fds[1].fd = -1;
  }
  // What it wrote before its end; a child that it has left may hold the pipes open.
  if (fds[0].fd >= 0) TakeOutput(fds[0].fd, output.out, dialog_.most_kept);
  if (fds[1].fd >= 0) TakeOutput(fds[1].fd, output.err, dialog_.most_kept);
  output.status = program_.Wait();
  return output;
}

absl::StatusOr<ProgramOutput> RunToItsEnd(const std::vector<std::string>& words,
                                          const std::vector<std::string>& environment, absl::Duration patience,
                                          const ProgramDialog& dialog) {
  ASSIGN_OR_RETURN(AwaitedProgram program, AwaitedProgram::Start(words, environment, patience, dialog));
  return program.Wait();
}

}  // namespace muster
