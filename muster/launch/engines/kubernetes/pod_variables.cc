#include "muster/launch/engines/kubernetes/pod_variables.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/base/text/environment_list.h"
#include "muster/base/text/one_line.h"

namespace muster {
namespace {

constexpr char kBeginning[] = "MUSTER_KUBERNETES_";

std::string PodValue(const std::vector<std::string>& environment, const std::string& name) {
  return VariableIn(environment, absl::StrCat(kBeginning, name));
}

absl::Status ReadNumber(const std::vector<std::string>& environment, const std::string& name, int64_t most,
                        int64_t& number) {
  const std::string text = PodValue(environment, name);
  if (absl::SimpleAtoi(text, &number) && number >= 1 && number <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(kBeginning, name, " is '", OneLine(text, 100), "', not what muster train has put there"));
}

}  // namespace

std::string HostOfPod(int index) { return absl::StrCat("h", index); }

std::vector<std::pair<std::string, std::string>> PodVariables::List() const {
  const auto seconds = [](absl::Duration time) {
    return absl::StrCat(absl::ToInt64Seconds(absl::Ceil(time, absl::Seconds(1))));
  };
  return {{absl::StrCat(kBeginning, "JOB"), job},
          {absl::StrCat(kBeginning, "AT"), at},
          {absl::StrCat(kBeginning, "RUN"), run},
          {absl::StrCat(kBeginning, "PODS"), absl::StrCat(pods)},
          {absl::StrCat(kBeginning, "PORT"), absl::StrCat(port)},
          {absl::StrCat(kBeginning, "START_TIMEOUT"), seconds(start_timeout)},
          {absl::StrCat(kBeginning, "ENDING"), seconds(ending)},
          {absl::StrCat(kBeginning, "API"), may_ask_api ? "1" : "0"}};
}

absl::StatusOr<PodVariables> ReadPodVariables(const std::vector<std::string>& environment) {
  PodVariables pod{.job = PodValue(environment, "JOB"),
                   .at = PodValue(environment, "AT"),
                   .run = PodValue(environment, "RUN"),
                   .may_ask_api = PodValue(environment, "API") == "1"};
  if (pod.job.empty() || pod.run.empty())
    return absl::NotFoundError("this isn't the pod of a job that muster train has submitted");
  constexpr int64_t kMostSeconds = 100000000;
  int64_t pods = 0, port = 0, start = 0, ending = 0;
  if (const absl::Status read = ReadNumber(environment, "PODS", 100000, pods); !read.ok()) return read;
  if (const absl::Status read = ReadNumber(environment, "PORT", 65535, port); !read.ok()) return read;
  if (const absl::Status read = ReadNumber(environment, "START_TIMEOUT", kMostSeconds, start); !read.ok()) return read;
  if (const absl::Status read = ReadNumber(environment, "ENDING", kMostSeconds, ending); !read.ok()) return read;
  pod.pods = static_cast<int>(pods);
  pod.port = static_cast<uint16_t>(port);
  pod.start_timeout = absl::Seconds(start);
  pod.ending = absl::Seconds(ending);
  return pod;
}

}  // namespace muster
