// Finds the file that a command's first word means, before anything is started.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace muster {

// Searches as a shell does: a word with a '/' is a path; any other is looked up in the directories of `search_path`
// ("/usr/bin:/bin"). NotFound if no such program exists, PermissionDenied if it can't be executed; both name the
// program.
absl::StatusOr<std::string> FindProgram(const std::string& program, const std::string& search_path);

}  // namespace muster
