#include "muster/launch/foreground/copied_folder.h"

#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/launch/project/decimal_size.h"
#include "muster/launch/task/task_environment.h"
#include "muster/launch/task_run/left_out.h"

namespace muster {

absl::StatusOr<CopiedFolder> CopiedFolder::Take(const std::string& folder, const std::string& here,
                                                const std::vector<std::string>& left_out) {
  ASSIGN_OR_RETURN(DescribedTree tree, DescribeTree(folder, {.left_out = left_out}));
  CopiedFolder copied{.tree = std::move(tree), .nonce = std::nullopt, .below = ""};
  // In a folder that can't be written, no host is believed to see it.
  if (absl::StatusOr<NonceFile> nonce = NonceFile::Make(folder); nonce.ok()) copied.nonce.emplace(*std::move(nonce));
  const std::string below = std::filesystem::path(here).lexically_relative(folder).string();
  if (below != ".") copied.below = below;
  return copied;
}

CodeCopyOrder CopiedFolder::OrderFor(const HostPlan& plan, const std::string& run_id) const {
  CodeCopyOrder order{.job = run_id,
                      .hosts = HostsWithTasks(plan),
                      .left_out = LeftOutHosts(plan),
                      .optional = plan.optional_hosts,
                      .environment = {{kRunIdVariable, run_id}},
                      .see_paths = {}};
  if (!nonce.has_value()) return order;
  order.see_paths = {nonce->path()};
  order.nonce = nonce->nonce();
  return order;
}

std::string CopiedFolder::WorkFolder(const PlacedCode& placed, const std::string& here) const {
  if (placed.work.empty()) return here;
  return below.empty() ? placed.work : JoinPath(placed.work, below);
}

std::string CopiedText(const std::map<std::string, PlacedCode>& placed) {
  std::vector<std::string> parts, seeing;
  for (const auto& [host, code] : placed)
    if (code.work.empty()) seeing.push_back(host);
  if (!seeing.empty())
    parts.push_back(absl::StrCat(absl::StrJoin(seeing, ", "), seeing.size() == 1 ? " sees" : " see", " the folder"));
  for (const auto& [host, code] : placed)
    if (!code.work.empty())
      parts.push_back(absl::StrCat("copied ", code.files, code.files == 1 ? " file" : " files", " (",
                                   DecimalSize(static_cast<int64_t>(code.bytes)), ") to ", host));
  return absl::StrJoin(parts, "; ");
}

}  // namespace muster
