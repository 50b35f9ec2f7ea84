// Real programs under test: started with pipes at their outputs; the test waits for their output or their end; they are
// never left behind. Waiting has a deadline so generous that it only turns a hanging test into a red one. Used by one
// thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace muster {

struct ProcessOptions {
  // Set for the process, in addition to the test's own environment without TF_CONFIG, MUSTER_* and
  // SLURM_*.
  std::vector<std::pair<std::string, std::string>> environment;
  std::string directory;         // working directory; empty: the test's
  bool output_together = false;  // both outputs go to `out`
};

// Returns how long a test waits for what a process is to do, before it says that it hangs: two minutes, or
// MUSTER_TEST_PATIENCE seconds, for engines whose jobs take long to begin.
absl::Duration HangsAfter();

// A program and its outputs. Output that isn't read fills the pipe and blocks the program's printing, so a program that
// logs every step is never more than a pipe's worth of lines ahead of the test.
class Process {
 public:
  explicit Process(const std::vector<std::string>& words, const ProcessOptions& options = {});
  ~Process();  // kills it if it still runs
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int number) const;

  // Reads stdout or stderr until `text` has come; fails at the end of the output. What came before counts.
  void WaitForOut(const std::string& text) { WaitFor(out_fd_, out, text, 0); }
  void WaitForErr(const std::string& text) { WaitFor(err_fd_, err, text, 0); }
  // The same, but only what comes after the first `from` bytes of stderr counts. Returns where `text` begins.
  size_t WaitForErr(const std::string& text, size_t from) { return WaitFor(err_fd_, err, text, from); }
  // Waits for a whole line that begins with `beginning` and has `text` after that. Returns its end, to be used as the
  // next `from`; npos, and a failure, if none has come.
  size_t WaitForErrLine(const std::string& beginning, const std::string& text, size_t from);
  // Reads whatever comes next on stdout.
  void ReadSomeOut();

  // Reads everything and waits for the end. Returns the exit code, 128 + N for signal N, -1 if it hung and was killed.
  int Wait();
  // The same without reading.
  int Reap();

  std::string out, err;  // what has been read

 private:
  size_t WaitFor(int& fd, std::string& into, const std::string& text, size_t from);
  int ReapBy(absl::Time deadline);

  pid_t pid_ = 0;  // 0 once reaped
  int pid_fd_ = -1;
  int out_fd_ = -1, err_fd_ = -1;  // -1 after their end
};

// Processes that the test didn't start, watched for their end.
class Watched {
 public:
  Watched() = default;
  ~Watched();
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  void Add(pid_t pid);
  void WaitForEnds() const;
  size_t size() const { return fds_.size(); }

 private:
  std::vector<int> fds_;
};

// Returns the rest of each line of `text` that begins with `beginning`.
std::vector<std::string> After(const std::string& text, const std::string& beginning);

// Returns the names of a folder's entries, sorted: used to find what a test leaves behind.
std::vector<std::string> EntriesOf(const std::string& folder);

// Returns all processes of this machine whose environment has `variable` ("NAME=value").
std::vector<pid_t> ProcessesWith(const std::string& variable);

}  // namespace muster
