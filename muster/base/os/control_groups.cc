#include "muster/base/os/control_groups.h"

#include <algorithm>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace muster {

std::vector<ControlGroupFolders> ControlGroupsWith(std::string_view controller, const std::string& proc,
                                                   const std::string& mount) {
  std::vector<ControlGroupFolders> groups;
  std::ifstream list(proc + "/self/cgroup");
  for (std::string line; std::getline(list, line);) {
    // "0::/path" (version 2) or "4:cpu,cpuacct:/path".
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const std::vector<std::string> controllers = absl::StrSplit(parts[1], ',');
    const bool is_first = std::find(controllers.begin(), controllers.end(), controller) != controllers.end();
    if (!is_first && parts[0] != "0") continue;
    ControlGroupFolders group{.is_first_version = is_first,
                              .folders = {is_first ? absl::StrCat(mount, "/", parts[1]) : mount}};
    for (const absl::string_view name : absl::StrSplit(parts[2], '/', absl::SkipEmpty()))
      group.folders.push_back(absl::StrCat(group.folders.back(), "/", name));
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace muster
