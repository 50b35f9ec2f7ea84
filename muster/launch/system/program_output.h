// Runs a program to its end and returns what it has written: for short questions to other programs. Thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
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

// Blocks until the program has ended, at most for `patience`. Each stream is kept up to 1 MiB, or as `dialog`
// says, the rest is read and dropped. NotFound or PermissionDenied: it can't be started. DeadlineExceeded: it took
// longer, and was killed.
absl::StatusOr<ProgramOutput> RunToItsEnd(const std::vector<std::string>& words,
                                          const std::vector<std::string>& environment, absl::Duration patience,
                                          const ProgramDialog& dialog = {});

}  // namespace muster
