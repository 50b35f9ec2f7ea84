#include "muster/launch/backends/local/detached_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <sstream>

#include "muster/launch/backends/local/kernel_file.h"

namespace muster {
namespace {

// Writes the text over the process's command line, in the memory where the kernel looks for it: proc(5), fields 48 to
// 51 of stat. The environment comes next there. On failure the name stays what it was.
void SetCommandLine(const std::string& text, bool needs_environment) {
  const std::string line = ReadKernelFile("/proc/self/stat").value_or("");
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return;
  std::istringstream rest(line.substr(name_end + 1));
  std::string field;
  for (int i = 3; i < 48; ++i) rest >> field;
  uintptr_t begin = 0, end = 0, environment_begin = 0, environment_end = 0;
  rest >> begin >> end >> environment_begin >> environment_end;
  if (rest.fail() || begin == 0 || end <= begin) return;
  if (!needs_environment && environment_begin == end && environment_end > end) end = environment_end;
  char* words = reinterpret_cast<char*>(begin);
  std::memset(words, 0, end - begin);
  text.copy(words, end - begin - 1);
}

void CloseAllBut(std::vector<int> kept) {
  std::sort(kept.begin(), kept.end());
  unsigned first = 3;
  for (const int fd : kept) {
    if (fd < static_cast<int>(first)) continue;
    if (static_cast<unsigned>(fd) > first) close_range(first, static_cast<unsigned>(fd) - 1, 0);
    first = static_cast<unsigned>(fd) + 1;
  }
  close_range(first, ~0u, 0);
}

}  // namespace

SavedIdentity OwnIdentity() {
  SavedIdentity own;
  own.command_line = ReadKernelFile("/proc/self/cmdline").value_or("");
  char name[16] = {};
  if (prctl(PR_GET_NAME, name) == 0) own.name = name;
  sigprocmask(SIG_SETMASK, nullptr, &own.blocked);
  return own;
}

void DetachProcess(const std::string& title, std::vector<int> kept, bool needs_environment) {
  setsid();
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  prctl(PR_SET_NAME, title.substr(0, title.find(' ')).c_str());
  SetCommandLine(title, needs_environment);
  const int nothing = open("/dev/null", O_RDWR);
  for (const int fd : {0, 1, 2}) dup2(nothing, fd);
  CloseAllBut(std::move(kept));
  if (chdir("/") != 0) return;  // on failure that directory stays in use while the run lasts, which does no harm
}

void TakeIdentity(const SavedIdentity& identity) {
  SetCommandLine(identity.command_line, /*needs_environment=*/true);
  prctl(PR_SET_NAME, identity.name.c_str());
  sigprocmask(SIG_SETMASK, &identity.blocked, nullptr);
}

}  // namespace muster
