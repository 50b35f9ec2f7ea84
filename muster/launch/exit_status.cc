#include "muster/launch/exit_status.h"

#include <cstring>

#include "absl/strings/str_cat.h"

namespace muster {

std::string ExitStatus::ToString() const {
  if (signal == 0) return absl::StrCat("exited with ", code);
  return absl::StrCat("was killed by signal ", signal, " (", strsignal(signal), ")");
}

}  // namespace muster
