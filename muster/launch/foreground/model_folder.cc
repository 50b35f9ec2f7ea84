#include "muster/launch/foreground/model_folder.h"

#include <filesystem>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster {
namespace {

// A relative path, or the program's own, begins where the tasks do: in the shared folder, as far as anybody knows.
bool IsIn(const std::string& shared, const std::string& folder) {
  if (shared.empty()) return false;
  if (folder.empty() || folder.front() != '/') return true;
  const std::filesystem::path below = std::filesystem::path(folder).lexically_normal().lexically_relative(shared);
  return !below.empty() && *below.begin() != "..";
}

}  // namespace

std::vector<std::string> UnsharedModelFolderLines(const ClusterRequest& request, const std::string& shared) {
  if (IsIn(shared, request.model_dir)) return {};
  const TaskId chief = ChiefOf(request);
  const auto writer = request.hosts.find(chief);
  if (writer == request.hosts.end()) return {};
  const std::string& own = writer->second;
  std::set<std::string> of_ps;
  for (const auto& [task, host] : request.hosts)
    if (task.job == kPsJob && host != own) of_ps.insert(host);
  std::vector<std::string> lines;
  if (!of_ps.empty() && !request.model_dir.empty())
    lines.push_back(absl::StrCat("unless ", absl::StrJoin(of_ps, ", "), of_ps.size() == 1 ? " shares " : " share ",
                                 request.model_dir, " with ", own, ", ", chief.ToString(), " alone writes to ", own,
                                 " and restores from there, for all parameter servers: training works; without ", own,
                                 " there are no checkpoints"));
  const auto evaluator = request.hosts.find({kEvaluatorJob, 0});
  if (evaluator == request.hosts.end() || evaluator->second == own) return lines;
  const std::string folder = request.model_dir.empty() ? "the program's folder for them" : request.model_dir;
  lines.push_back(absl::StrCat("the evaluator on ", evaluator->second, " finds no checkpoint unless ", folder,
                               " is a folder that it shares with ", own, ", where ", chief.ToString(),
                               " writes all of them; training works without. If they share none: muster train with "
                               "placement: {evaluator: HOST} puts both on one host"));
  return lines;
}

}  // namespace muster
