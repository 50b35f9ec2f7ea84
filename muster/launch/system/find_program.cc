#include "muster/launch/system/find_program.h"

#include <sys/stat.h>
#include <unistd.h>

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace muster {
namespace {

bool IsFile(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

}  // namespace

absl::StatusOr<std::string> FindProgram(const std::string& program, const std::string& search_path) {
  std::vector<std::string> candidates;
  if (program.find('/') != std::string::npos) {
    candidates.push_back(program);
  } else {
    for (const std::string& directory : std::vector<std::string>(absl::StrSplit(search_path, ':'))) {
      candidates.push_back(absl::StrCat(directory.empty() ? "." : directory, "/", program));
    }
  }
  bool there = false;
  for (const std::string& candidate : candidates) {
    if (!IsFile(candidate)) continue;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    there = true;
  }
  if (there) {
    return absl::PermissionDeniedError(absl::StrCat("program '", program, "' is not executable (chmod +x?)"));
  }
  const bool is_path = program.find('/') != std::string::npos;
  return absl::NotFoundError(
      absl::StrCat("program '", program, "' not found; accepted: the path of a program",
                   is_path ? "" : ", or the name of one in a directory of PATH (one in this directory is ./NAME)"));
}

}  // namespace muster
