// One of the commands of the engine `command` while it runs: cuts what it writes into lines, and ends it with all that
// it has started when its time is over (SIGTERM, then SIGKILL). Used by the thread of its FdLoop.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/launch/system/fd_loop.h"
#include "muster/launch/system/piped_program.h"
#include "muster/launch/task/exit_status.h"

namespace muster {

struct CommandOrder {
  std::vector<std::string> words;
  std::vector<std::string> environment;  // "NAME=VALUE"
  std::string folder;                    // in which it runs, absolute
  absl::Duration time_limit;
};

struct CommandEnd {
  ExitStatus status;
  bool time_over = false;  // it was ended because of that
  // Says what has happened: the command as it could be typed, how it ended, and the last line that it wrote to stderr.
  std::string text;
};

class CommandRun {
 public:
  // From SIGTERM to SIGKILL.
  static constexpr absl::Duration kEnding = absl::Seconds(5);
  static constexpr size_t kLongestLine = 64 << 10;  // a longer one is cut

  struct Calls {
    std::function<void(std::string_view line)> out;  // without its line feed; not for empty ones
    std::function<void(std::string_view line)> err;  // likewise
    // Called once, from the loop or OnTime, after all lines. It may destroy the CommandRun.
    absl::AnyInvocable<void(const CommandEnd& end)> ended;
  };

  // Starts it, with an empty stdin. Borrows loop and clock. NotFound or PermissionDenied: it can't be started, with
  // the command.
  static absl::StatusOr<std::unique_ptr<CommandRun>> Start(const CommandOrder& order, FdLoop& loop, const Clock& clock,
                                                           Calls calls);
  ~CommandRun();  // kills it
  CommandRun(const CommandRun&) = delete;
  CommandRun& operator=(const CommandRun&) = delete;

  // Asks it to end now.
  void End();
  absl::Time deadline() const;
  void OnTime();

 private:
  struct Stream {
    int fd;
    std::string unfinished;
  };

  CommandRun(const CommandOrder& order, PipedProgram program, FdLoop& loop, const Clock& clock, Calls calls);
  void Read(Stream& stream, size_t most, const std::function<void(std::string_view line)>& take);
  void OnEnd();
  void TakeError(std::string_view line);

  // Constant after construction.
  const CommandOrder order_;
  FdLoop& loop_;
  const Clock& clock_;

  Calls calls_;
  PipedProgram program_;
  Stream out_, err_;
  std::string last_error_;
  absl::Time end_at_, kill_at_ = absl::InfiniteFuture();
  bool time_over_ = false;
};

// Adds a line to a command's, of which the last 100 are kept: one that writes without end fills no memory.
void KeepLine(std::string_view line, std::vector<std::string>& lines);

// Runs a command to its end and returns its last lines of stdout. Blocks, at most for its time limit and kEnding. `say`
// takes lines of its stderr. An error: it can't be started.
struct CommandOutput {
  CommandEnd end;
  std::vector<std::string> lines;  // as KeepLine keeps them
};
absl::StatusOr<CommandOutput> RunCommand(const CommandOrder& order, const Clock& clock,
                                         const std::function<void(std::string_view line)>& say);

}  // namespace muster
