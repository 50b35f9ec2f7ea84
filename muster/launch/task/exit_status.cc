#include "muster/launch/task/exit_status.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "muster/launch/task/resources.h"

namespace muster {

std::string ExitStatus::ToString() const {
  const std::string why =
      over_memory == 0 ? "" : absl::StrCat(": it used more than its ", MemoryText(over_memory), " of memory");
  if (signal == 0) return absl::StrCat("exited with ", code, why);
  return absl::StrCat("was killed by signal ", signal, " (", strsignal(signal), ")", why);
}

}  // namespace muster
