// Which file a command's first word means, looked up before anything is started.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace muster {

// As a shell does it: a word with a '/' is a path, any other is looked for in the directories of `search_path`
// ("/usr/bin:/bin"). NotFound if there is none, PermissionDenied if it can't be executed, both naming the program.
absl::StatusOr<std::string> FindProgram(const std::string& program, const std::string& search_path);

}  // namespace muster
