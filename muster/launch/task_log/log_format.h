// The format of a task's log on disk (docs/experiments/logs.md): its files' names and its lines, for the writer and
// the readers. The only state is a LogLineFormat's cache, which isn't thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"

namespace muster {

// The values are the characters in the files.
enum class LogKind : char { kStdout = 'o', kStderr = 'e', kState = 's', kMuster = 'm' };

struct LogLineRecord {
  std::string_view task = {};  // name of the task's folder below the logs: "worker.1"; runs of a grid: "3.worker.1"
  absl::Time when = {};
  LogKind kind = LogKind::kStdout;
  std::string_view text = {};  // raw
};

// The folder, beside those of the tasks, with the lines about the experiment itself.
inline constexpr char kExperimentLog[] = "experiment";

// Every line begins with "2026-01-31T07:23:46.123456Z o ".
inline constexpr size_t kLogLineHead = 30;
// Longest line, head included; a longer one is damage.
inline constexpr size_t kMostLogLine = 1 << 20;

// Returns "000012.log".
std::string LogFileName(int64_t number);
// Returns the numbers of the log files in the folder, ascending, and ignores other files. Empty if the folder is
// missing.
std::vector<int64_t> LogFileNumbers(const std::string& folder);

// Formats and parses lines. Lines of the same second in a row need no calendar computation.
class LogLineFormat {
 public:
  // Appends a line with its end. `text` has no '\n'. A time before 1970 or after 9999 is moved to the nearest allowed
  // one.
  void Append(absl::Time when, LogKind kind, std::string_view text, std::string& to);
  // Parses a line without its end into time, kind and text (borrowed from it). Returns false if it isn't a log line;
  // `into` is then unchanged.
  bool Parse(std::string_view line, LogLineRecord& into);

 private:
  char head_[kLogLineHead] = {};
  int64_t head_second_ = -1;  // since 1970, of head_
  std::string parsed_;        // "2026-01-31T07:23:46", of the last line
  absl::Time parsed_second_;
};

// Returns whether `line` is the start of a line whose writer was killed within its head, before any text.
bool IsTornLogLine(std::string_view line);

}  // namespace muster
