#include "muster/launch/task_log/logged_since.h"

#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "absl/status/statusor.h"
#include "muster/base/files/file_system.h"
#include "muster/launch/task_log/log_format.h"

namespace muster {

LoggedOutput CountLogged(const std::string& folder, LoggedOutput known) {
  LogLineFormat format;
  for (const int64_t number : LogFileNumbers(folder)) {
    if (number < known.end.file) continue;
    const std::string path = JoinPath(folder, LogFileName(number));
    const absl::StatusOr<std::string> text = PosixFileSystem().ReadFile(path);
    if (!text.ok()) continue;
    size_t at = number == known.end.file ? static_cast<size_t>(known.end.bytes) : 0;
    for (size_t end = 0; at < text->size() && (end = text->find('\n', at)) != std::string::npos; at = end + 1) {
      LogLineRecord line;
      if (!format.Parse(std::string_view(*text).substr(at, end - at), line)) continue;
      if (line.kind == LogKind::kStdout) known.out += line.text.size() + 1;
      if (line.kind == LogKind::kStderr) known.err += line.text.size() + 1;
    }
    if (at < text->size()) static_cast<void>(!truncate(path.c_str(), static_cast<off_t>(at)));
    known.end = {.file = number, .bytes = static_cast<int64_t>(std::min(at, text->size()))};
  }
  return known;
}

}  // namespace muster
