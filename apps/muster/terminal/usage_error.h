// Reports wrong usage of the command: one line on stderr, exit code 2, nothing on stdout.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace muster {

// Exit code for wrong configuration or usage. (design: Kubernetes' TFJob treats 2 as permanent.)
inline constexpr int kExitUsage = 2;

// Writes "muster COMMAND: message" and returns kExitUsage. Control characters of the message are escaped, so that it
// stays one line whatever the user's input was.
int UsageError(std::string_view command, const absl::Status& status);

}  // namespace muster
