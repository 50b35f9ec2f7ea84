// Lines that a benchmark's tasks print as fast as they can, and whether all of them have arrived. Each is 80 bytes with
// its end, numbered from 0 in each task, so that what is lost, doubled, torn or out of order is seen.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace muster::bench {

// What a task prints behind them.
inline constexpr std::string_view kAllPrinted = "all printed";

// The task's program: prints `count` lines in writes of 64 KiB, then kAllPrinted; then reads a byte from the FIFO
// `gate`, unless that is empty, and is done. The exit code.
int PrintNumberedLines(int64_t count, const std::string& gate);

// Of all tasks together. Not thread-safe.
class LineCount {
 public:
  // Any line of a task, without its end. False: it is none of them.
  bool Take(std::string_view task, std::string_view line);
  // Those that came whole and in their order.
  int64_t whole() const { return whole_; }

 private:
  std::map<std::string, int64_t, std::less<>> next_;  // by task
  int64_t whole_ = 0;
};

}  // namespace muster::bench
