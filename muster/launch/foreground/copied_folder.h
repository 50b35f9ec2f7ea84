// A folder of this machine of which the hosts of a run get a copy, unless they see it. Not thread-safe.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/launch/backends/backend.h"
#include "muster/launch/task_run/code_copy.h"

namespace muster {

struct CopiedFolder {
  // Hashes all files of `folder` that .musterignore doesn't leave out, and makes the nonce file in it if it can.
  // `here`: the folder in which the command runs, `folder` or below it; both absolute. `left_out` as in ListProject.
  // Blocking. Errors as those of DescribeTree.
  static absl::StatusOr<CopiedFolder> Take(const std::string& folder, const std::string& here,
                                           const std::vector<std::string>& left_out = {});

  DescribedTree tree;
  std::optional<NonceFile> nonce;  // until the hosts have the code; unset: nobody can write into the folder
  std::string below;               // the command's folder below the tree; empty: the tree itself

  CodeCopyOrder OrderFor(const HostPlan& plan, const std::string& run_id) const;
  // Returns where a task works on a host that has got the code so.
  std::string WorkFolder(const PlacedCode& placed, const std::string& here) const;
};

// Returns "h1 and h2 see the folder; copied 3 files (12.0 KB) to h3", a line for the user.
std::string CopiedText(const std::map<std::string, PlacedCode>& placed);

}  // namespace muster
