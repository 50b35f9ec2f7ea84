// The MUSTER_HOME on the other side of an experiment that has one in a job and one at the submitter, without a folder
// that both see (docs/far_homes.md). The run's file `other_home` names it. Stateless, thread-safe.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"

namespace muster {

struct OtherHome {
  std::string path;        // absolute
  bool elsewhere = false;  // the supervisor is there, so its processes and GPUs aren't this machine's

  bool operator==(const OtherHome&) const = default;
};

// Reads Home::other_home. Returns nullopt without such a file; one that muster hasn't written counts as none.
std::optional<OtherHome> ReadOtherHome(const std::string& file);
// Writes it if it says something else. InvalidArgument: no absolute path. Other errors are those of ReplaceFile.
[[nodiscard]] absl::Status WriteOtherHome(const std::string& file, const OtherHome& other);

// Returns a path below the other home as the same path below `home`; any other path as it is.
std::string PathOnThisSide(const OtherHome& other, const std::string& home, const std::string& path);

}  // namespace muster
