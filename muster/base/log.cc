#include "muster/base/log.h"

// Both libraries are compiled into this file, which makes them no library that a program needs. spdlog gets another
// name here, because it has state (its registry of loggers): a program that links this file and uses spdlog for
// itself has two that know nothing of each other, and never a mixture of both.
#define FMT_HEADER_ONLY
#define SPDLOG_FMT_EXTERNAL
#define SPDLOG_HEADER_ONLY
#define spdlog muster_spdlog  // NOLINT(readability-identifier-naming): the name of a namespace

#include <unistd.h>

#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "muster/base/mutex.h"
#include "muster/base/text/one_line.h"
#include "spdlog/sinks/stdout_color_sinks.h"
#include "spdlog/spdlog.h"

namespace muster {
namespace {

// Replaces spdlog's own default logger, which must not be exchanged while another thread writes.
class CurrentLogger {
 public:
  void Set(std::shared_ptr<spdlog::logger> logger) {
    const MutexLock lock(mutex_);
    logger_ = std::move(logger);
  }
  std::shared_ptr<spdlog::logger> Get() {
    const MutexLock lock(mutex_);
    return logger_;
  }

 private:
  Mutex mutex_;
  std::shared_ptr<spdlog::logger> logger_ ABSL_GUARDED_BY(mutex_) = spdlog::default_logger();
};

// A line may have words of another process in it. They can neither change the terminal nor look like lines of their
// own: control characters are written out, and what follows a line break is indented.
std::string Harmless(const std::string& line) {
  std::string shown;
  for (size_t begin = 0;; shown += "\n    ") {
    const size_t end = line.find('\n', begin);
    shown += OneLine(std::string_view(line).substr(begin, end - begin));
    if (end == std::string::npos) return shown;
    begin = end + 1;
  }
}

CurrentLogger& TheLogger() {
  static CurrentLogger* const logger = new CurrentLogger;  // never destroyed: threads write until the very end
  return *logger;
}

}  // namespace

void SetUpLog(const std::string& task, const std::string& level) {
  auto logger = std::make_shared<spdlog::logger>("muster", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  // On a terminal, a progress bar may be on the line with the cursor at its beginning, so the line is cleared first.
  const std::string clear = isatty(STDERR_FILENO) == 1 ? "\x1b[K" : "";
  logger->set_pattern(clear + (task.empty() ? "%H:%M:%S.%e %^%L%$ %v" : "%H:%M:%S.%e %^%L%$ [" + task + "] %v"));
  logger->set_level(spdlog::level::from_str(level));
  TheLogger().Set(std::move(logger));
}

void LogLine(LogLevel level, const std::string& line) {
  TheLogger().Get()->log(level == LogLevel::kInfo      ? spdlog::level::info
                         : level == LogLevel::kWarning ? spdlog::level::warn
                                                       : spdlog::level::err,
                         "{}", Harmless(line));
}

void LogLineOnce(LogLevel level, const std::string& line) {
  struct Said {
    Mutex mutex;
    std::set<std::string> lines ABSL_GUARDED_BY(mutex);
  };
  static Said said;  // one per process, as spdlog's logger is
  {
    const MutexLock lock(said.mutex);
    if (!said.lines.insert(line).second) return;
  }
  LogLine(level, line);
}

}  // namespace muster
