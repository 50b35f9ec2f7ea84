#include "muster/launch/foreground/model_folder.h"

#include "absl/strings/str_cat.h"

namespace muster {

std::string UnsharedModelFolderText(const ClusterRequest& request) {
  const TaskId chief = ChiefOf(request);
  const auto evaluator = request.hosts.find({kEvaluatorJob, 0});
  const auto writer = request.hosts.find(chief);
  if (evaluator == request.hosts.end() || writer == request.hosts.end() || evaluator->second == writer->second)
    return "";
  const std::string folder = request.model_dir.empty() ? "the program's folder for them" : request.model_dir;
  return absl::StrCat("the evaluator on ", evaluator->second, " finds no checkpoint unless ", folder,
                      " is a folder that it shares with ", writer->second, ", where ", chief.ToString(),
                      " writes all of them; training works without. If they share none: muster train with placement: "
                      "{evaluator: HOST} puts both on one host");
}

}  // namespace muster
