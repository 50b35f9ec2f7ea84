#include "apps/muster/usage_error.h"

#include <cstdio>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"

namespace muster {

int UsageError(std::string_view command, const absl::Status& status) {
  std::string line = "muster";
  if (!command.empty()) line.append(" ").append(command);
  line += ": ";
  for (char c : status.message()) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) {
      absl::StrAppendFormat(&line, "\\x%02x", static_cast<unsigned char>(c));
    } else {
      line += c;
    }
  }
  std::fprintf(stderr, "%s\n", line.c_str());
  return kExitUsage;
}

}  // namespace muster
