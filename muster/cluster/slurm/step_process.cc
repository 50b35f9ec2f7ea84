#include "muster/cluster/slurm/step_process.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr int kHighestAncestor = 64;  // processes above one another
constexpr absl::string_view kSlurmstepdTitle = "slurmstepd: [";

struct ProcessStat {
  pid_t parent = 0;
  int terminal = 0;
};

std::string ProcContents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Reads "PID (NAME) STATE PARENT GROUP SESSION TERMINAL ...", where the name may contain anything. Parent 0: no such
// process.
ProcessStat ProcessStatOf(const std::string& folder) {
  const std::string text = ProcContents(folder + "/stat");
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream rest(text.substr(name_end + 1));
  std::string state;
  int group = 0, session = 0;
  ProcessStat stat;
  rest >> state >> stat.parent >> group >> session >> stat.terminal;
  return rest.fail() ? ProcessStat{} : stat;
}

// Returns "17.0" of the title "slurmstepd: [17.0]"; empty for other processes.
std::string StepOfTitle(const std::string& title) {
  if (!absl::StartsWith(title, kSlurmstepdTitle)) return "";
  const size_t end = title.find(']');
  return end == std::string::npos ? "" : title.substr(kSlurmstepdTitle.size(), end - kSlurmstepdTitle.size());
}

bool IsMute(const std::string& folder) {
  for (const char* stream : {"0", "1", "2"}) {
    std::error_code unreadable;
    if (std::filesystem::read_symlink(absl::StrCat(folder, "/fd/", stream), unreadable) != "/dev/null") return false;
  }
  return true;
}

}  // namespace

StepProcess FindStepProcess(const std::string& proc, pid_t pid, const std::string& task_pid) {
  StepProcess found;
  for (int height = 0; height < kHighestAncestor && pid > 0; ++height) {
    const std::string folder = absl::StrCat(proc, "/", pid);
    const ProcessStat stat = ProcessStatOf(folder);
    if (absl::StrCat(pid) == task_pid && stat.parent > 0) {
      found.has_terminal = stat.terminal != 0;
      found.is_task = height == 0;
      found.is_mute = IsMute(folder);
    }
    found.stepd = StepOfTitle(ProcContents(folder + "/cmdline"));
    if (!found.stepd.empty()) return found;
    pid = stat.parent;
  }
  return found;
}

}  // namespace muster
