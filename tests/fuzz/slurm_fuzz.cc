// Any text as Slurm's lists and as the variables of a step gives an error that names the way out, or places for all
// tasks.
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "muster/base/check.h"
#include "muster/cluster/slurm/node_list.h"
#include "muster/cluster/slurm/slurm_step.h"

namespace muster {
namespace {

void CheckLists(const std::string& text) {
  const auto nodes = ExpandNodeList(text);
  MUSTER_CHECK(nodes.ok() ? !nodes->empty() && nodes->size() <= kMostSlurmNodes : !nodes.status().message().empty());
  const auto counts = ExpandCounts(text);
  MUSTER_CHECK(counts.ok() ? !counts->empty() && counts->size() <= kMostSlurmNodes
                           : !counts.status().message().empty());
}

void CheckStep(const std::vector<std::string>& lines) {
  const auto line = [&](size_t i) { return i < lines.size() ? lines[i] : std::string(); };
  const SlurmVariables variables{.job_id = "1",
                                 .step_id = line(0),
                                 .step_num_tasks = line(1),
                                 .step_nodelist = line(2),
                                 .step_counts = line(3),
                                 .proc_id = line(4),
                                 .distribution = line(5)};
  const auto answer = ReadSlurm(variables, false);
  if (!answer.ok()) {
    MUSTER_CHECK(absl::IsInvalidArgument(answer.status()));
    return;
  }
  if (!answer->step) return;
  MUSTER_CHECK(answer->step->proc_id >= 0 && static_cast<size_t>(answer->step->proc_id) < answer->step->places.size());
}

}  // namespace
}  // namespace muster

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  muster::CheckLists(text);
  muster::CheckStep(absl::StrSplit(text, '\n'));
  return 0;
}
