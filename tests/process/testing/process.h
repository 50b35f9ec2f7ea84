// Real programs under test: started with pipes at their outputs, waited for by what they print or by their end, and
// never left behind. Waiting has a deadline so generous that it only turns what hangs into a red test. Used by one
// thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace muster {

struct ProcessOptions {
  // Set for the process, over the test's own environment without TF_CONFIG and MUSTER_*.
  std::vector<std::pair<std::string, std::string>> environment;
  std::string directory;         // where it runs; empty: where the test does
  bool output_together = false;  // both outputs are `out`
};

// A program and its outputs. What isn't read fills the pipe and stops the program's printing, so a program that logs
// every step is never more than a pipe's worth of lines ahead of the test.
class Process {
 public:
  explicit Process(const std::vector<std::string>& words, const ProcessOptions& options = {});
  ~Process();  // kills it if it still runs
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int number) const;

  // Reads stdout or stderr until `text` has come; fails at its end. What has come before counts.
  void WaitForOut(const std::string& text) { WaitFor(out_fd_, out, text, 0); }
  void WaitForErr(const std::string& text) { WaitFor(err_fd_, err, text, 0); }
  // Likewise, but only what comes behind the first `from` bytes of stderr counts. Returns where it begins.
  size_t WaitForErr(const std::string& text, size_t from) { return WaitFor(err_fd_, err, text, from); }
  // Likewise a line that begins with `beginning` and has `text` behind that, whole. Returns its end, from which the
  // next one can be waited for; npos: none has come, and there is a failure.
  size_t WaitForErrLine(const std::string& beginning, const std::string& text, size_t from);
  // Whatever comes next on stdout.
  void ReadSomeOut();

  // Reads all, waits for the end; the exit code, 128 + N for signal N, -1 if it had to be killed because it hung.
  int Wait();
  // Without reading.
  int Reap();

  std::string out, err;  // what was read

 private:
  size_t WaitFor(int& fd, std::string& into, const std::string& text, size_t from);

  pid_t pid_ = 0;  // 0 once reaped
  int pid_fd_ = -1;
  int out_fd_ = -1, err_fd_ = -1;  // -1 at their end
};

// Processes of others, held to see them end.
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

// The rest of each line of `text` that begins with `beginning`.
std::vector<std::string> After(const std::string& text, const std::string& beginning);

// The names of what lies in a folder, sorted: what a test leaves behind is there afterwards.
std::vector<std::string> EntriesOf(const std::string& folder);

// Of every process of this machine in whose environment `variable` ("NAME=value") stands.
std::vector<pid_t> ProcessesWith(const std::string& variable);

}  // namespace muster
