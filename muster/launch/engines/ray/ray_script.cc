#include "muster/launch/engines/ray/ray_script.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/text/one_line.h"
#include "muster/launch/system/shell_word.h"

namespace muster {
namespace {

// What a node's agent and its actor need themselves, which counts as the job's.
constexpr double kOwnBytesOfNode = 192 << 20;
// Where no task states any: as good as nothing.
constexpr double kSomeCpu = 0.01;

// $1 is the id of Ray's job; $2, if it is there, the jobs after whose ends it may begin.
constexpr char kScriptEnd[] = R"sh(
if ! [ -x "$muster" ]; then
  echo "muster: $(hostname) has no $muster: put muster into a folder that the node of the job's driver sees, too" >&2
  exit 2
fi
# Any folder named ray would do for find_spec, as that of Ray's sessions in /tmp, but has no origin.
has_ray='import importlib.util, sys
spec = importlib.util.find_spec("ray")
sys.exit(spec is None or spec.origin is None)'
for one in "$python" python3 python; do
  if "$one" -c "$has_ray" 2>/dev/null; then
    exec "$one" "$folder/driver/ray_driver.py" "$folder/job.sh" "$@"
  fi
done
echo "muster: $(hostname) has no $python with Ray, where the job's driver runs: say which python has it there (ray: {python: FILE})" >&2
exit 2
)sh";

}  // namespace

std::string RayPlace::text() const { return absl::StrCat(address, " ", python); }

RayPlace RayPlace::Parse(const std::string& text) {
  const std::pair<std::string, std::string> words = absl::StrSplit(text, absl::MaxSplits(' ', 1));
  return {.address = words.first.empty() ? kUsualRayAddress : words.first,
          .python = words.second.empty() ? kUsualRayPython : words.second};
}

std::map<std::string, double> RayResources(const JobRequest& request) {
  std::map<std::string, double> resources = {{"CPU", request.needs.cpus.value_or(kSomeCpu)}};
  if (request.needs.mem_bytes.has_value())
    resources["memory"] = static_cast<double>(*request.needs.mem_bytes) + kOwnBytesOfNode;
  if (request.needs.gpus > 0) resources["GPU"] = request.needs.gpus;
  if (request.setting.ray.has_value())
    for (const auto& [name, amount] : request.setting.ray->resources) resources[name] = amount;
  std::erase_if(resources, [](const auto& resource) { return resource.second == 0; });
  if (resources.empty()) resources["CPU"] = kSomeCpu;
  return resources;
}

std::string RayScript(const JobRequest& request, const RayPlace& place) {
  const RaySetting setting = request.setting.ray.value_or(RaySetting());
  const std::vector<std::string> after = absl::StrSplit(request.after, ':', absl::SkipEmpty());
  const nlohmann::json asked = {{"address", place.address},
                                {"python", place.python},
                                {"nodes", setting.nodes},
                                {"least_nodes", request.least_hosts > 0 ? request.least_hosts : setting.nodes},
                                {"resources", RayResources(request)},
                                {"after", after},
                                {"autoscaler", setting.autoscaler},
                                {"experiment", request.experiment},
                                {"project", request.project},
                                {"muster", request.muster},
                                {"home", request.home},
                                {"folder", request.folder},
                                {"output", request.output_file},
                                {"over", request.over_file},
                                {"waits", request.waits_file},
                                {"umask", request.users_umask}};
  return absl::StrCat("#!/bin/sh\n# Experiment ", request.experiment, " of project ", OneLine(request.project),
                      ", as muster train has given it to Ray.\n#RAY ",
                      asked.dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace),
                      "\n\npython=", ShellWord(place.python), "\nmuster=", ShellWord(request.muster),
                      "\nfolder=", ShellWord(request.folder), kScriptEnd);
}

}  // namespace muster
