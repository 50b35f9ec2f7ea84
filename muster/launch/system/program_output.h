// Runs a program to its end and returns what it has written: for short questions to other programs. Thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/launch/system/piped_program.h"
#include "muster/launch/task/exit_status.h"

namespace muster {

struct ProgramOutput {
  ExitStatus status;
  std::string out, err;
};

// What a program gets and may write beyond what RunToItsEnd's short form says.
struct ProgramDialog {
  std::string input = "";              // its stdin
  size_t most_kept = size_t{1} << 20;  // bytes of each stream; the rest is read and dropped
};

// A program that was started and whose end is awaited later, so that several run at the same time. Its destructor kills
// it if it hasn't ended.
class AwaitedProgram {
 public:
  // As RunToItsEnd; gives it of its input what a pipe holds. `patience` begins now.
  static absl::StatusOr<AwaitedProgram> Start(const std::vector<std::string>& words,
                                              const std::vector<std::string>& environment, absl::Duration patience,
                                              const ProgramDialog& dialog = {});
  // As RunToItsEnd. To be called once.
  absl::StatusOr<ProgramOutput> Wait();

 private:
  AwaitedProgram(PipedProgram program, std::string name, absl::Duration patience, const ProgramDialog& dialog);
  void Give();

  PipedProgram program_;
  std::string name_;
  absl::Duration patience_;
  absl::Time until_;
  ProgramDialog dialog_;
  size_t given_ = 0;
};

// Blocks until the program has ended, at most for `patience`. Each stream is kept up to 1 MiB, or as `dialog`
// says, the rest is read and dropped. NotFound or PermissionDenied: it can't be started. DeadlineExceeded: it took
// longer, and was killed.
absl::StatusOr<ProgramOutput> RunToItsEnd(const std::vector<std::string>& words,
                                          const std::vector<std::string>& environment, absl::Duration patience,
                                          const ProgramDialog& dialog = {});

}  // namespace muster
