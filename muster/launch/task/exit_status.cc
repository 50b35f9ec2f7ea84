#include "muster/launch/task/exit_status.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "muster/launch/task/resources.h"

namespace muster {
namespace {

// Signals by which programs die. SIGUSR1 isn't one of them: 138 is an exit code with which programs ask to be
// restarted.
constexpr std::array<int, 13> kDeadlySignals = {SIGHUP, SIGINT,  SIGQUIT, SIGILL,  SIGTRAP, SIGABRT, SIGBUS,
                                                SIGFPE, SIGKILL, SIGSEGV, SIGPIPE, SIGTERM, SIGXCPU};

// "killed by signal 11 (segmentation fault)".
std::string KilledBy(int signal) {
  std::string name = strsignal(signal);
  if (!name.empty()) name[0] = absl::ascii_tolower(static_cast<unsigned char>(name[0]));
  return absl::StrCat("killed by signal ", signal, " (", name, ")");
}

std::string WhereFrom(KilledFrom from) {
  switch (from) {
    case KilledFrom::kOutside:
      return ", from outside";
    case KilledFrom::kOutOfMemory:
      return ", from outside: memory had run out on its machine or in its job or container";
    default:
      return "";
  }
}

}  // namespace

std::string ExitStatus::ToString() const {
  if (!lost_host.empty()) return absl::StrCat("was lost with its host ", lost_host);
  const std::string why = over_memory == 0 ? WhereFrom(killed_from) : absl::StrCat(": it ", Cause());
  if (signal != 0) return absl::StrCat("was ", KilledBy(signal), why);
  if (at_signal) return absl::StrCat("exited with ", code, " when a signal came to all of its job");
  const bool told_by_shell =
      std::find(kDeadlySignals.begin(), kDeadlySignals.end(), code - 128) != kDeadlySignals.end();
  return absl::StrCat("exited with ", code,
                      told_by_shell ? absl::StrCat(", as its program was ", KilledBy(code - 128)) : "", why);
}

std::string ExitStatus::Cause(const std::string& now_on) const {
  if (over_memory > 0) return absl::StrCat("used more than its ", MemoryText(over_memory), " of memory");
  if (lost_host.empty()) return killed_from == KilledFrom::kUnknown ? "" : ToString();
  if (now_on.empty()) return absl::StrCat(lost_host, " was lost");
  return now_on == lost_host ? absl::StrCat(lost_host, " was lost and is back")
                             : absl::StrCat(lost_host, " was lost; it runs on ", now_on, " now");
}

}  // namespace muster
