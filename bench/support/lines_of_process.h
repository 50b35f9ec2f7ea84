// A program whose output a benchmark reads line by line while it runs, because it measures when lines come. Not
// thread-safe. Linux.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bench/support/process.h"

namespace muster::bench {

class LinesOfProcess {
 public:
  // Starts a program and reads stdout and stderr. The program dies with this process.
  LinesOfProcess(const std::vector<std::string>& command, const EnvironmentChanges& environment);
  // Kills the program unless Wait was called.
  ~LinesOfProcess();
  LinesOfProcess(const LinesOfProcess&) = delete;
  LinesOfProcess& operator=(const LinesOfProcess&) = delete;

  // Calls `take` for every line, without its end, as they come. Returns true once `take` returns false, false when the
  // output has ended. A line is given once. DeadlineExceeded: nothing has come for `patience`; the message has the last
  // lines.
  absl::StatusOr<bool> Read(absl::Duration patience, const std::function<bool(std::string_view line)>& take);

  // Blocks until it has ended and returns its exit code, or 128 + the signal. Read to the end first: it may wait for
  // its reader.
  int Wait(double* cpu_seconds = nullptr);

 private:
  pid_t pid_ = 0;  // 0 after Wait
  int fd_ = -1;
  std::string unread_;
  size_t at_ = 0;  // index into unread_
  std::string last_lines_;
};

}  // namespace muster::bench
