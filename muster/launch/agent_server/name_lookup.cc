#include "muster/launch/agent_server/name_lookup.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "absl/strings/str_split.h"
#include "muster/base/os/uninterrupted.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/one_line.h"

namespace muster {
namespace {

// What fits into a pipe, as the program has ended.
std::string AllIn(int fd) {
  std::array<char, 16384> bytes;
  const ssize_t got = Uninterrupted([&] { return read(fd, bytes.data(), bytes.size()); });
  return std::string(bytes.data(), got > 0 ? static_cast<size_t>(got) : 0);
}

}  // namespace

absl::StatusOr<std::unique_ptr<NameLookup>> NameLookup::Start(
    std::vector<std::string> command, const std::string& host, FdLoop& loop,
    std::function<void(absl::StatusOr<std::vector<std::string>>)> done) {
  command.push_back(host);
  ASSIGN_OR_RETURN(PipedProgram program, PipedProgram::Start(command, {"PATH=/usr/bin:/bin"}));
  program.CloseStdin();
  return std::unique_ptr<NameLookup>(new NameLookup(std::move(program), loop, std::move(done)));
}

NameLookup::NameLookup(PipedProgram program, FdLoop& loop,
                       std::function<void(absl::StatusOr<std::vector<std::string>>)> done)
    : loop_(loop), program_(std::move(program)), done_(std::move(done)) {
  loop_.Watch(program_.end_fd(), POLLIN, [this](short) { OnEnd(); });
}

NameLookup::~NameLookup() { loop_.Forget(program_.end_fd()); }

// The one who hears it may destroy this object.
void NameLookup::OnEnd() {
  loop_.SetEvents(program_.end_fd(), 0);
  const std::vector<std::string> lines = absl::StrSplit(AllIn(program_.stdout_fd()), '\n', absl::SkipWhitespace());
  const std::string said = OneLine(AllIn(program_.stderr_fd()), 500);
  const bool found = program_.Wait().ok() && !lines.empty();
  const auto done = done_;
  done(found ? absl::StatusOr<std::vector<std::string>>(lines)
             : absl::UnavailableError(said.empty() ? "the name can't be resolved" : said));
}

}  // namespace muster
