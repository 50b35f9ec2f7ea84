// What a task's log has behind a place in it: for a supervisor that goes on with a log whose writer was killed, and
// must know how much of the task's output is in it.
#pragma once

#include <cstdint>
#include <string>

namespace muster {

// A place between two lines of a log.
struct LogPlace {
  int64_t file = 0;   // its number; 0: before the first line
  int64_t bytes = 0;  // of that file

  bool operator==(const LogPlace&) const = default;
};

// How much of what a process has written to its two pipes is in its log, in bytes, and up to where in the log.
struct LoggedOutput {
  uint64_t out = 0;
  uint64_t err = 0;
  LogPlace end = {};

  bool operator==(const LoggedOutput&) const = default;
};

// Counts the lines of a log behind `known.end`, too, and removes what stands of a line in which its writer was killed.
// Blocking; call it before the log is written again.
LoggedOutput CountLogged(const std::string& folder, LoggedOutput known);

}  // namespace muster
