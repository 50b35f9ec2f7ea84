#include "apps/muster/terminal/usage_error.h"

#include <cstdio>
#include <string>

#include "muster/base/text/one_line.h"

namespace muster {

int UsageError(std::string_view command, const absl::Status& status) {
  const std::string line = OneLine(std::string(status.message()));
  std::fprintf(stderr, "muster%s%s: %s\n", command.empty() ? "" : " ", std::string(command).c_str(), line.c_str());
  return kExitUsage;
}

}  // namespace muster
