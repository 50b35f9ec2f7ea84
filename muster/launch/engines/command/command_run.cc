#include "muster/launch/engines/command/command_run.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/os/uninterrupted.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/one_line.h"
#include "muster/launch/hosts/command_setting.h"

namespace muster {
namespace {

constexpr size_t kPieceOfOutput = 16 << 10;
constexpr size_t kMostLinesKept = 100;
// As much as a pipe can hold: all that a command has left in it, and no more of a child that writes without end.
constexpr size_t kMostOfRest = size_t{1} << 20;

// The rest of a time is odd.
std::string ShownLimit(absl::Duration limit) {
  return absl::FormatDuration(absl::Ceil(limit, limit < absl::Seconds(1) ? absl::Milliseconds(1) : absl::Seconds(1)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CommandRun>> CommandRun::Start(const CommandOrder& order, FdLoop& loop,
                                                              const Clock& clock, Calls calls) {
  absl::StatusOr<PipedProgram> program = PipedProgram::Start(order.words, order.environment, order.folder);
  if (!program.ok())
    return absl::Status(program.status().code(),
                        absl::StrCat(TypedCommand(order.words), ": ", std::string(program.status().message())));
  return std::unique_ptr<CommandRun>(new CommandRun(order, *std::move(program), loop, clock, std::move(calls)));
}

CommandRun::CommandRun(const CommandOrder& order, PipedProgram program, FdLoop& loop, const Clock& clock, Calls calls)
    : order_(order),
      loop_(loop),
      clock_(clock),
      calls_(std::move(calls)),
      program_(std::move(program)),
      out_{program_.stdout_fd(), ""},
      err_{program_.stderr_fd(), ""},
      end_at_(clock.Now() + order.time_limit) {
  program_.CloseStdin();
  loop_.Watch(out_.fd, POLLIN, [this](short) { Read(out_, kPieceOfOutput, calls_.out); });
  loop_.Watch(err_.fd, POLLIN,
              [this](short) { Read(err_, kPieceOfOutput, [this](std::string_view line) { TakeError(line); }); });
  loop_.Watch(program_.end_fd(), POLLIN, [this](short) { OnEnd(); });
}

CommandRun::~CommandRun() {
  for (const int fd : {out_.fd, err_.fd, program_.end_fd()}) loop_.Forget(fd);
}

void CommandRun::TakeError(std::string_view line) {
  last_error_ = OneLine(line);
  calls_.err(last_error_);
}

// Reads what is there, and not much more than `most` bytes: a command may write faster than its lines are taken. A
// child that the command has left behind may hold the pipe open.
void CommandRun::Read(Stream& stream, size_t most, const std::function<void(std::string_view line)>& take) {
  std::array<char, kPieceOfOutput> piece;
  for (size_t taken = 0; taken < most;) {
    const ssize_t got = Uninterrupted([&] { return read(stream.fd, piece.data(), piece.size()); });
    if (got == 0) loop_.SetEvents(stream.fd, 0);
    if (got <= 0) return;
    taken += static_cast<size_t>(got);
    for (const char c : std::string_view(piece.data(), static_cast<size_t>(got))) {
      if (c != '\n') stream.unfinished += c;
      if (c != '\n' && stream.unfinished.size() < kLongestLine) continue;
      std::string line = std::exchange(stream.unfinished, "");
      if (!line.empty() && line.back() == '\r') line.pop_back();
      if (!line.empty()) take(line);
    }
  }
}

void CommandRun::End() {
  if (kill_at_ != absl::InfiniteFuture()) return;
  program_.SignalAll(SIGTERM);
  end_at_ = absl::InfiniteFuture();
  kill_at_ = clock_.Now() + kEnding;
}

absl::Time CommandRun::deadline() const { return std::min(end_at_, kill_at_); }

void CommandRun::OnTime() {
  const absl::Time now = clock_.Now();
  if (now >= kill_at_) return program_.Kill();  // its end follows
  if (now < end_at_) return;
  time_over_ = true;
  End();
}

void CommandRun::OnEnd() {
  const auto take_error = [this](std::string_view line) { TakeError(line); };
  Read(out_, kMostOfRest, calls_.out);
  Read(err_, kMostOfRest, take_error);
  if (const std::string line = std::exchange(out_.unfinished, ""); !line.empty()) calls_.out(line);
  if (const std::string line = std::exchange(err_.unfinished, ""); !line.empty()) take_error(line);
  // What it has started doesn't outlive an end that it was asked for.
  if (kill_at_ != absl::InfiniteFuture()) program_.Kill();
  CommandEnd end{.status = program_.Wait(), .time_over = time_over_, .text = ""};
  end.text = absl::StrCat(TypedCommand(order_.words),
                          time_over_ ? absl::StrCat(" hasn't ended within ", ShownLimit(order_.time_limit))
                                     : absl::StrCat(" ", end.status.ToString()),
                          last_error_.empty() ? "" : absl::StrCat(" (", last_error_, ")"));
  for (const int fd : {out_.fd, err_.fd, program_.end_fd()}) loop_.SetEvents(fd, 0);
  kill_at_ = end_at_ = absl::InfiniteFuture();
  auto ended = std::move(calls_.ended);
  ended(end);
}

void KeepLine(std::string_view line, std::vector<std::string>& lines) {
  if (lines.size() == kMostLinesKept) lines.erase(lines.begin());
  lines.emplace_back(line);
}

absl::StatusOr<CommandOutput> RunCommand(const CommandOrder& order, const Clock& clock,
                                         const std::function<void(std::string_view line)>& say) {
  FdLoop loop(clock);
  CommandOutput output;
  bool ended = false;
  CommandRun::Calls calls{.out = [&output](std::string_view line) { KeepLine(line, output.lines); },
                          .err = say,
                          .ended =
                              [&](const CommandEnd& end) {
                                output.end = end;
                                ended = true;
                              }};
  ASSIGN_OR_RETURN(const std::unique_ptr<CommandRun> run, CommandRun::Start(order, loop, clock, std::move(calls)));
  while (!ended) {
    loop.RunOnce(run->deadline());
    run->OnTime();
  }
  return output;
}

}  // namespace muster
