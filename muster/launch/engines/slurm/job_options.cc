#include "muster/launch/engines/slurm/job_options.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace muster {
namespace {

// What the supervisor and a node's agent need themselves, which counts as the job's.
constexpr int64_t kOwnBytes = int64_t{64} << 20;
constexpr int64_t kMebibyte = int64_t{1} << 20;
constexpr int kMostNodes = 100000;
// What sbatch takes.
constexpr absl::Duration kMostNotice = absl::Seconds(65535);

void AddNeeds(const HostNeeds& needs, SbatchOptions& options) {
  if (needs.cpus.has_value()) {
    options["ntasks-per-node"] = "1";
    options["cpus-per-task"] = absl::StrCat(static_cast<int64_t>(std::max(1.0, std::ceil(*needs.cpus))));
  }
  if (needs.mem_bytes.has_value())
    options["mem"] = absl::StrCat((*needs.mem_bytes + kOwnBytes + kMebibyte - 1) / kMebibyte, "M");
  if (needs.gpus > 0) options["gres"] = absl::StrCat("gpu:", needs.gpus);
}

// The user's own dependency counts, too: sbatch takes several, of which all must hold.
void AddDependency(const std::string& after, std::optional<std::string>& dependency) {
  if (after.empty()) return;
  const std::string stated = dependency.value_or("");
  dependency = absl::StrCat(stated, stated.empty() ? "" : ",", "afterany:", after);
}

}  // namespace

SbatchOptions OptionsOfJob(const JobRequest& request) {
  const SlurmSetting setting = request.setting.slurm.value_or(SlurmSetting());
  SbatchOptions options;
  AddNeeds(request.needs, options);
  options["job-name"] = absl::StrCat(request.project, ".", request.experiment);
  options["chdir"] = request.folder;
  options["output"] = request.output_file;
  options["open-mode"] = "append";
  // Slurm's own default differs between sites; a job that begins anew is wanted or it isn't.
  if (!setting.options.contains("requeue")) options[setting.max_requeues > 0 ? "requeue" : "no-requeue"] = "";
  options["signal"] = absl::StrCat("B:USR1@", absl::ToInt64Seconds(std::min(request.notice, kMostNotice)));
  for (const auto& [name, value] : setting.options) options[name] = value;
  AddDependency(request.after, options["dependency"]);
  std::erase_if(options, [](const auto& option) { return !option.second.has_value(); });
  return options;
}

JobTerms TermsOfSlurm(const SlurmSetting& setting) {
  JobTerms terms{.max_requeues = setting.max_requeues};
  const auto stated = [&setting](const char* name) {
    const auto option = setting.options.find(name);
    return option == setting.options.end() ? std::string() : option->second.value_or("");
  };
  const std::string nodes = stated("nodes");  // "2", or "2-4"
  if (int number = 0; absl::SimpleAtoi(nodes.substr(0, nodes.find('-')), &number))
    terms.hosts = std::clamp(number, 1, kMostNodes);
  terms.time_limit = ParseTimeLimit(stated("time"));
  return terms;
}

std::string NoticeSignal(const SbatchOptions& options) {
  const auto option = options.find("signal");
  // "B:USR1@90", where B is the script; "R" may stand beside it.
  if (option == options.end() || !option->second.has_value()) return "";
  const size_t colon = option->second->find(':');
  if (colon == std::string::npos || option->second->substr(0, colon).find('B') == std::string::npos) return "";
  std::string name = option->second->substr(colon + 1);
  name.resize(std::min(name.size(), name.find('@')));
  absl::AsciiStrToUpper(&name);  // Slurm and the shell take both
  if (absl::StartsWith(name, "SIG")) name.erase(0, 3);
  const bool is_name = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c));
  });
  return is_name ? name : "";
}

// As sbatch(1) describes --time: minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes,
// days-hours:minutes:seconds.
std::optional<absl::Duration> ParseTimeLimit(const std::string& text) {
  const std::vector<std::string> days_and_rest = absl::StrSplit(text, '-');
  if (days_and_rest.size() > 2) return std::nullopt;
  const bool has_days = days_and_rest.size() == 2;
  std::vector<int64_t> numbers;
  for (const absl::string_view part : absl::StrSplit(days_and_rest.back(), ':')) {
    int64_t number = 0;
    if (!std::all_of(part.begin(), part.end(), absl::ascii_isdigit) || !absl::SimpleAtoi(part, &number))
      return std::nullopt;
    numbers.push_back(number);
  }
  int64_t days = 0;
  if (numbers.size() > 3 || (has_days && !absl::SimpleAtoi(days_and_rest.front(), &days))) return std::nullopt;
  const absl::Duration whole_days = absl::Hours(24) * days;
  numbers.resize(3, -1);
  const auto at = [&numbers](size_t i) { return std::max<int64_t>(numbers[i], 0); };
  if (has_days) return whole_days + absl::Hours(at(0)) + absl::Minutes(at(1)) + absl::Seconds(at(2));
  if (numbers[2] >= 0) return absl::Hours(at(0)) + absl::Minutes(at(1)) + absl::Seconds(at(2));
  return absl::Minutes(at(0)) + absl::Seconds(at(1));
}

}  // namespace muster
