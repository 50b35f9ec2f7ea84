#include "muster/launch/system/program_output.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "muster/base/clock.h"
#include "muster/base/os/uninterrupted.h"
#include "muster/base/status_macros.h"
#include "muster/launch/system/piped_program.h"

namespace muster {
namespace {

constexpr size_t kMostKept = size_t{1} << 20;

// Reads what is there. Returns false at the end.
bool TakeOutput(int fd, std::string& kept) {
  while (true) {
    std::array<char, 8192> piece;
    const ssize_t got = Uninterrupted([&] { return read(fd, piece.data(), piece.size()); });
    if (got < 0) return errno == EAGAIN;
    if (got == 0) return false;
    kept.append(piece.data(), std::min(static_cast<size_t>(got), kMostKept - std::min(kMostKept, kept.size())));
  }
}

}  // namespace

absl::StatusOr<ProgramOutput> RunToItsEnd(const std::vector<std::string>& words,
                                          const std::vector<std::string>& environment, absl::Duration patience) {
  ASSIGN_OR_RETURN(PipedProgram program, PipedProgram::Start(words, environment));
  program.CloseStdin();
  ProgramOutput output;
  const absl::Time until = RealClock().Now() + patience;
  pollfd fds[] = {{program.stdout_fd(), POLLIN, 0}, {program.stderr_fd(), POLLIN, 0}, {program.end_fd(), POLLIN, 0}};
  while (fds[2].revents == 0) {
    const absl::Duration left = until - RealClock().Now();
    if (left <= absl::ZeroDuration()) {
      program.Kill();
      static_cast<void>(program.Wait());
      return absl::DeadlineExceededError(
          absl::StrCat(words.front(), " hasn't answered within ", absl::FormatDuration(patience)));
    }
    const int ready =
        poll(fds, 3, static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1)))));
    if (ready < 0 && errno != EINTR) break;
    if (fds[0].revents != 0 && !TakeOutput(fds[0].fd, output.out)) fds[0].fd = -1;
    if (fds[1].revents != 0 && !TakeOutput(fds[1].fd, output.err)) fds[1].fd = -1;
  }
  // What it wrote before its end; a child that it has left may hold the pipes open.
  if (fds[0].fd >= 0) TakeOutput(fds[0].fd, output.out);
  if (fds[1].fd >= 0) TakeOutput(fds[1].fd, output.err);
  output.status = program.Wait();
  return output;
}

}  // namespace muster
