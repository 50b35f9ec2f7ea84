// How a task's log lies on disk (docs/experiments/logs.md): the names of its files and its lines, for the one who
// writes and those who read. No state but what LogLineFormat remembers; that one isn't thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"

namespace muster {

// The values are what stands in the files.
enum class LogKind : char { kStdout = 'o', kStderr = 'e', kState = 's', kMuster = 'm' };

struct LogLineRecord {
  std::string_view task = {};  // name of the task's folder below the logs: "worker.1"; runs of a grid: "3.worker.1"
  absl::Time when = {};
  LogKind kind = LogKind::kStdout;
  std::string_view text = {};  // raw
};

// The folder beside those of the tasks with the lines about the experiment itself.
inline constexpr char kExperimentLog[] = "experiment";

// "2026-01-31T07:23:46.123456Z o ", what every line begins with.
inline constexpr size_t kLogLineHead = 30;
// No line is longer, head included; what is longer nevertheless, is damage.
inline constexpr size_t kMostLogLine = 1 << 20;

// "000012.log".
std::string LogFileName(int64_t number);
// Numbers of the log files in the folder, ascending, whatever else lies there. Empty if it isn't there.
std::vector<int64_t> LogFileNumbers(const std::string& folder);

// Lines one after the other: those of one second cost no calendar.
class LogLineFormat {
 public:
  // A line with its end. `text` has no '\n'. A time before 1970 or after 9999 becomes the nearest in between.
  void Append(absl::Time when, LogKind kind, std::string_view text, std::string& to);
  // Of a line without its end: time, kind and text (borrowed from it). False: it is none, and `into` as it was.
  bool Parse(std::string_view line, LogLineRecord& into);

 private:
  char head_[kLogLineHead] = {};
  int64_t head_second_ = -1;  // since 1970, of head_
  std::string parsed_;        // "2026-01-31T07:23:46", of the last line
  absl::Time parsed_second_;
};

// Whether it is what there is of a line whose writer was killed within its head: nothing of the text.
bool IsTornLogLine(std::string_view line);

}  // namespace muster
