// Numbered lines that a benchmark's tasks print as fast as they can, and a check that all have arrived. They are
// numbered from 0 in each task, so that lost, doubled, torn or disordered lines are noticed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace muster::bench {

// The line that a task prints after them.
inline constexpr std::string_view kAllPrinted = "all printed";

inline constexpr size_t kNumberedLineBytes = 80;       // with its end
inline constexpr size_t kMostNumberedLineBytes = 150;  // of another length that is asked for; at least 10

// The task's program: prints `count` lines in writes of 64 KiB, then kAllPrinted; then, unless `gate` is empty, reads a
// byte from that FIFO. Returns the exit code.
int PrintNumberedLines(int64_t count, const std::string& gate, size_t line_bytes = kNumberedLineBytes);

// Counts the lines of all tasks. Not thread-safe.
class LineCount {
 public:
  explicit LineCount(size_t line_bytes = kNumberedLineBytes) : line_bytes_(line_bytes) {}
  // Takes any line of a task, without its end. False: it isn't one of the numbered lines.
  bool Take(std::string_view task, std::string_view line);
  // Returns how many came whole and in order.
  int64_t whole() const { return whole_; }

 private:
  const size_t line_bytes_;
  std::map<std::string, int64_t, std::less<>> next_;  // by task
  int64_t whole_ = 0;
};

}  // namespace muster::bench
