#include "muster/launch/engines/spark/spark_script.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/text/one_line.h"
#include "muster/launch/system/shell_word.h"

namespace muster {
namespace {

// What a host's agent needs itself, and the Python worker that holds it.
constexpr int64_t kOwnBytesOfHost = 256 << 20;
constexpr char kNoAddress[] = "-";

// $1, if it is there, names the jobs after whose ends it may begin.
constexpr char kDriverStart[] = R"sh(
if ! [ -x "$muster" ]; then
  echo "muster: there is no $muster any more: start the experiment again" | tee -a "$output" >&2
  exit 2
fi
if ! command -v "$python" >/dev/null; then
  echo "muster: there is no $python any more: say which python has pyspark (spark: python)" | tee -a "$output" >&2
  exit 2
fi
exec "$python" "$folder/driver/spark_driver.py" "$folder/job.sh" "$@"
)sh";

}  // namespace

std::string SparkPlace::text() const { return absl::StrCat(address.empty() ? kNoAddress : address, " ", python); }

SparkPlace SparkPlace::Parse(const std::string& text) {
  const std::pair<std::string, std::string> words = absl::StrSplit(text, absl::MaxSplits(' ', 1));
  return {.address = words.first == kNoAddress ? "" : words.first,
          .python = words.second.empty() ? kUsualSparkPython : words.second};
}

std::string SparkScript(const JobRequest& request, const SparkPlace& place) {
  const SparkSetting setting = request.setting.spark.value_or(SparkSetting());
  const std::vector<std::string> after = absl::StrSplit(request.after, ':', absl::SkipEmpty());
  const int64_t bytes = request.needs.mem_bytes.has_value() ? *request.needs.mem_bytes + kOwnBytesOfHost : 0;
  nlohmann::json asked = {{"address", place.address},
                          {"python", place.python},
                          {"nodes", setting.nodes},
                          {"least_nodes", request.least_hosts > 0 ? request.least_hosts : setting.nodes},
                          {"start_timeout", absl::ToDoubleSeconds(setting.start_timeout)},
                          {"conf", setting.conf},
                          {"cpus", static_cast<int>(std::ceil(request.needs.cpus.value_or(1)))},
                          {"mem_mib", (bytes + (1 << 20) - 1) >> 20},
                          {"gpus", request.needs.gpus},
                          {"ports", nullptr},
                          {"after", after},
                          {"experiment", request.experiment},
                          {"project", request.project},
                          {"muster", request.muster},
                          {"home", request.home},
                          {"folder", request.folder},
                          {"output", request.output_file},
                          {"over", request.over_file},
                          {"waits", request.waits_file},
                          {"umask", request.users_umask}};
  if (request.setting.ports.has_value()) asked["ports"] = {request.setting.ports->first, request.setting.ports->count};
  return absl::StrCat("#!/bin/sh\n# Experiment ", request.experiment, " of project ", OneLine(request.project),
                      ", as muster train gives it to Spark.\n#SPARK ",
                      asked.dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace),
                      "\n\npython=", ShellWord(place.python), "\nmuster=", ShellWord(request.muster),
                      "\nfolder=", ShellWord(request.folder), "\noutput=", ShellWord(request.output_file),
                      kDriverStart);
}

}  // namespace muster
