#include "muster/launch/engines/slurm/agent_step.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "muster/base/clock.h"
#include "muster/base/os/uninterrupted.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

constexpr size_t kMostUnfinished = 4 << 10;  // of a line; a longer one counts as several

}  // namespace

absl::StatusOr<std::unique_ptr<AgentStep>> AgentStep::Start(AgentStepOptions options, FdLoop& loop) {
  absl::StatusOr<PipedProgram> srun = PipedProgram::Start(options.words, options.environment);
  if (absl::IsNotFound(srun.status()))
    return absl::NotFoundError(
        "there is no srun in the PATH, by which Slurm starts tasks; accepted: a machine with Slurm's commands, with "
        "the folder that has them in the PATH");
  RETURN_IF_ERROR(srun.status());
  return std::unique_ptr<AgentStep>(new AgentStep(std::move(options), *std::move(srun), loop));
}

AgentStep::AgentStep(AgentStepOptions options, PipedProgram srun, FdLoop& loop)
    : options_(std::move(options)),
      loop_(loop),
      srun_(std::move(srun)),
      out_{.fd = srun_.stdout_fd(), .line = ""},
      err_{.fd = srun_.stderr_fd(), .line = ""} {
  srun_.CloseStdin();
  for (Stream* const stream : {&out_, &err_}) loop_.Watch(stream->fd, POLLIN, [this, stream](short) { Read(*stream); });
  loop_.Watch(srun_.end_fd(), POLLIN, [this](short) { OnEnd(); });
}

AgentStep::~AgentStep() {
  for (const int fd : {out_.fd, err_.fd}) loop_.Forget(fd);
  if (!has_ended_) loop_.Forget(srun_.end_fd());
}

void AgentStep::Read(Stream& stream) {
  while (true) {
    std::array<char, kMostUnfinished> piece;
    const ssize_t got = Uninterrupted([&] { return read(stream.fd, piece.data(), piece.size()); });
    if (got == 0) loop_.SetEvents(stream.fd, 0);
    if (got <= 0) return;
    stream.line.append(piece.data(), static_cast<size_t>(got));
    while (!stream.line.empty()) {
      size_t end = stream.line.find('\n');
      if (end == std::string::npos && stream.line.size() < kMostUnfinished) break;
      end = std::min(end, stream.line.size());
      const std::string line = stream.line.substr(0, end);
      stream.line.erase(0, end + 1);
      if (!line.empty()) options_.said(ReadStepLine(line, options_.hosts));
    }
  }
}

void AgentStep::OnEnd() {
  for (Stream* const stream : {&out_, &err_}) Read(*stream);
  loop_.Forget(srun_.end_fd());
  has_ended_ = true;
  options_.ended(srun_.Wait().ToString());
}

void AgentStep::End(bool at_once) {
  if (!has_ended_) srun_.Signal(at_once ? SIGQUIT : SIGTERM);
}

bool AgentStep::AwaitEnd(absl::Time until) const {
  if (has_ended_) return true;
  const absl::Duration left = std::max(until - RealClock().Now(), absl::ZeroDuration());
  pollfd end = {.fd = srun_.end_fd(), .events = POLLIN, .revents = 0};
  const int found = Uninterrupted([&] { return poll(&end, 1, static_cast<int>(absl::ToInt64Milliseconds(left))); });
  return found == 1;
}

}  // namespace muster
