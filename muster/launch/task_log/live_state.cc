#include "muster/launch/task_log/live_state.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "muster/base/files/file_system.h"

namespace muster {
namespace {

constexpr char kLiveState[] = "live";
constexpr char kNewLiveState[] = "live.new";
// Two of the longest lines, one for each stream.
constexpr size_t kMostLiveBytes = 2 * kMostLogLine;

bool WriteWhole(const std::string& path, std::string_view bytes) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  const bool whole = write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  return close(fd) == 0 && whole;
}

std::string ReadWhole(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  std::string bytes;
  if (fd < 0) return bytes;
  char piece[16 << 10];
  for (ssize_t got = 1; got > 0 && bytes.size() < kMostLiveBytes;) {
    got = read(fd, piece, sizeof(piece));
    if (got > 0) bytes.append(piece, got);
  }
  close(fd);
  return bytes;
}

}  // namespace

void WriteLiveState(const std::string& folder, std::string_view lines) {
  const std::string path = JoinPath(folder, kLiveState);
  if (lines.empty()) {
    unlink(path.c_str());
    return;
  }
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const std::string fresh = JoinPath(folder, kNewLiveState);
  if (!WriteWhole(fresh, lines) || rename(fresh.c_str(), path.c_str()) != 0) unlink(fresh.c_str());
}

void ReadLiveState(const std::string& folder, const std::function<void(const LogLineRecord& line)>& take) {
  const std::string bytes = ReadWhole(JoinPath(folder, kLiveState));
  LogLineFormat format;
  std::string_view rest = bytes;
  for (size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
    LogLineRecord line;
    if (format.Parse(rest.substr(0, end), line)) take(line);
    rest.remove_prefix(end + 1);
  }
}

}  // namespace muster
