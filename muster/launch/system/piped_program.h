// Starts a program whose three standard streams are pipes of this process: ssh, sbatch, kubectl. It has a session of
// its own, so that Ctrl-C in the terminal doesn't reach it and it can't ask for a password there. Not thread-safe.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/launch/task/exit_status.h"

namespace muster {

// A program that runs. Its destructor kills it if it hasn't ended yet, and closes the pipes.
class PipedProgram {
 public:
  // Searches `arguments[0]` in the PATH of `environment` ("NAME=VALUE"), which the program gets with the default
  // handling of all signals. `directory`: in which it runs; empty: this process's. NotFound or PermissionDenied names
  // the program.
  static absl::StatusOr<PipedProgram> Start(const std::vector<std::string>& arguments,
                                            const std::vector<std::string>& environment,
                                            const std::string& directory = "");

  PipedProgram(PipedProgram&& other) noexcept { *this = std::move(other); }
  PipedProgram& operator=(PipedProgram&& other) noexcept;
  ~PipedProgram();

  // Non-blocking. -1 once closed.
  int stdin_fd() const { return fds_[0]; }
  int stdout_fd() const { return fds_[1]; }
  int stderr_fd() const { return fds_[2]; }
  // Readable once the program has ended.
  int end_fd() const { return end_fd_; }
  void CloseStdin() { Close(fds_[0]); }

  // Waits for the end, which must have come or be near (after Kill, or when end_fd is readable). Later calls return the
  // same.
  ExitStatus Wait();
  // Sends a signal to it alone. Has no effect after Wait.
  void Signal(int number) const;
  // Sends a signal to it and its process group. Has no effect after Wait.
  void SignalAll(int number) const;
  // Kills it and its process group. Has no effect after Wait.
  void Kill();

 private:
  PipedProgram() = default;
  static void Close(int& fd);

  pid_t pid_ = 0;  // 0: moved from, or waited for
  int end_fd_ = -1;
  int fds_[3] = {-1, -1, -1};
  ExitStatus status_;
};

}  // namespace muster
