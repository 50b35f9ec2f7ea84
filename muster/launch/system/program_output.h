// Runs a program to its end and returns what it has written: for short questions to other programs. Thread-safe.
#pragma once

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

// Blocks until the program has ended, at most for `patience`. Each stream is kept up to 1 MiB, the rest is read and
// dropped. NotFound or PermissionDenied: it can't be started. DeadlineExceeded: it took longer, and was killed.
absl::StatusOr<ProgramOutput> RunToItsEnd(const std::vector<std::string>& words,
                                          const std::vector<std::string>& environment, absl::Duration patience);

}  // namespace muster
