#include "muster/launch/watch/process_table.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <set>
#include <string_view>
#include <unordered_map>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace muster {
namespace {

// Indices of proc(5)'s fields in /proc/PID/stat, counted from the state, which is the first after the name.
enum ProcessStatField : size_t {
  kStatParent = 1,
  kStatGroup = 2,
  kStatSession = 3,
  kStatUserTicks = 11,
  kStatChildrensSystemTicks = 14,
  kStatResidentPages = 21,
};

struct CloseProcessFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};

// Reads the start of a small file, enough for all of a stat file.
std::string ReadProcessFile(int folder, const std::string& path) {
  const int fd = openat(folder, path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  std::array<char, 2048> text;
  const ssize_t bytes = read(fd, text.data(), text.size());
  close(fd);
  return bytes > 0 ? std::string(text.data(), static_cast<size_t>(bytes)) : "";
}

bool ParseProcessStat(pid_t pid, std::string_view stat, ProcessRow& row) {
  // The program's name is in parentheses and may contain anything, even parentheses.
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) return false;
  const std::vector<absl::string_view> fields = absl::StrSplit(
      absl::StripAsciiWhitespace(absl::string_view(stat.data() + name_end + 1, stat.size() - name_end - 1)), ' ');
  if (fields.size() <= kStatResidentPages) return false;
  row.pid = pid;
  int64_t ticks = 0, pages = 0;
  bool whole = absl::SimpleAtoi(fields[kStatParent], &row.parent) && absl::SimpleAtoi(fields[kStatGroup], &row.group) &&
               absl::SimpleAtoi(fields[kStatSession], &row.session) &&
               absl::SimpleAtoi(fields[kStatResidentPages], &pages);
  for (size_t i = kStatUserTicks; i <= kStatChildrensSystemTicks; ++i) {
    int64_t some = 0;
    whole = whole && absl::SimpleAtoi(fields[i], &some);
    ticks += some;
  }
  row.cpu_seconds = static_cast<double>(ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
  row.resident_bytes = pages * sysconf(_SC_PAGESIZE);
  return whole;
}

// Finds the leader to which a process belongs by going up its ancestors, visiting each at most once.
class LeaderFinder {
 public:
  LeaderFinder(const std::vector<ProcessRow>& processes, const std::vector<pid_t>& leaders)
      : leaders_(leaders.begin(), leaders.end()) {
    for (const ProcessRow& row : processes) rows_[row.pid] = &row;
  }

  // Returns 0 if there is none.
  pid_t Find(pid_t pid) {
    std::vector<pid_t> passed;
    pid_t leader = 0;
    for (;;) {
      // Entered before it is known: processes are read one after the other, so parents may seem to form a circle.
      const auto [known, is_new] = found_.try_emplace(pid, 0);
      if (!is_new) {
        leader = known->second;
        break;
      }
      passed.push_back(pid);
      const auto row = rows_.find(pid);
      if (row == rows_.end()) break;
      leader = Own(*row->second);
      if (leader != 0) break;
      pid = row->second->parent;
    }
    for (const pid_t below : passed) found_[below] = leader;
    return leader;
  }

 private:
  pid_t Own(const ProcessRow& row) const {
    for (const pid_t candidate : {row.pid, row.group, row.session})
      if (leaders_.contains(candidate)) return candidate;
    return 0;
  }

  const std::set<pid_t> leaders_;
  std::unordered_map<pid_t, const ProcessRow*> rows_;
  std::unordered_map<pid_t, pid_t> found_;
};

}  // namespace

std::vector<ProcessRow> ReadProcesses(const std::string& proc) {
  std::vector<ProcessRow> rows;
  const std::unique_ptr<DIR, CloseProcessFolder> folder(opendir(proc.c_str()));
  if (folder == nullptr) return rows;
  while (const dirent* entry = readdir(folder.get())) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(entry->d_name, &pid) || pid <= 0) continue;
    ProcessRow row;
    if (ParseProcessStat(pid, ReadProcessFile(dirfd(folder.get()), absl::StrCat(entry->d_name, "/stat")), row))
      rows.push_back(row);
  }
  return rows;
}

std::map<pid_t, ProcessSums> SumsByLeader(const std::vector<ProcessRow>& processes, const std::vector<pid_t>& leaders) {
  LeaderFinder finder(processes, leaders);
  std::map<pid_t, ProcessSums> sums;
  for (const ProcessRow& row : processes) {
    const pid_t leader = finder.Find(row.pid);
    if (leader == 0) continue;
    sums[leader].cpu_seconds += row.cpu_seconds;
    sums[leader].resident_bytes += row.resident_bytes;
  }
  return sums;
}

}  // namespace muster
