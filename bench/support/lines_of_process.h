// A program whose output a benchmark reads line by line while it runs, since what is measured is when lines come. Not
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
  // Both its outputs are read. It dies with this process.
  LinesOfProcess(const std::vector<std::string>& command, const EnvironmentChanges& environment);
  // Kills it, if it hasn't been waited for.
  ~LinesOfProcess();
  LinesOfProcess(const LinesOfProcess&) = delete;
  LinesOfProcess& operator=(const LinesOfProcess&) = delete;

  // Calls `take` for every line, without its end, as they come, until that returns false (true) or the output has ended
  // (false). A line is given once. DeadlineExceeded: nothing has come for `patience`; the message has the last lines.
  absl::StatusOr<bool> Read(absl::Duration patience, const std::function<bool(std::string_view line)>& take);

  // Blocks until it has ended; its exit code, or 128 + the signal. Read to the end first: it may wait for its reader.
  int Wait(double* cpu_seconds = nullptr);

 private:
  pid_t pid_ = 0;  // 0 once it has been waited for
  int fd_ = -1;
  std::string unread_;
  size_t at_ = 0;  // in it
  std::string last_lines_;
};

}  // namespace muster::bench
