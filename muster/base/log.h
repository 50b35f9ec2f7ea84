// A process's log: one line per event on stderr. Thread-safe. spdlog does the work and stays out of this header (the
// copy of its formatting library that libtorch brings would clash with it).
#pragma once

#include <string>

#include "absl/strings/str_cat.h"

namespace muster {

// Every process calls this once in main, and a server calls it again with its task, even while other threads write.
// `task` ("worker:1") is put before each message; if it is empty, nothing is (under `muster run`, which prefixes the
// lines itself). `level` is trace, debug, info, warning or error.
void SetUpLog(const std::string& task, const std::string& level = "info");

enum class LogLevel { kInfo, kWarning, kError };
void LogLine(LogLevel level, const std::string& line);
// Writes the line unless LogLineOnce has written it before in this process: what a process can't have is no news for
// its next session.
void LogLineOnce(LogLevel level, const std::string& line);

// Logs the arguments concatenated, as absl::StrCat joins them.
template <typename... Args>
void LogInfo(const Args&... args) {
  LogLine(LogLevel::kInfo, absl::StrCat(args...));
}
template <typename... Args>
void LogWarning(const Args&... args) {
  LogLine(LogLevel::kWarning, absl::StrCat(args...));
}
template <typename... Args>
void LogError(const Args&... args) {
  LogLine(LogLevel::kError, absl::StrCat(args...));
}

}  // namespace muster
