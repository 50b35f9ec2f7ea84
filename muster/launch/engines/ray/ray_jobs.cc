#include "muster/launch/engines/ray/ray_jobs.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/os/memory_file.h"
#include "muster/base/os/uninterrupted.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/one_line.h"
#include "muster/launch/engines/driver/driver_engine.h"
#include "muster/launch/engines/driver/driver_variables.h"
#include "muster/launch/engines/ray/ray_programs.h"
#include "muster/launch/system/program_output.h"
#include "muster/transport/io/socket.h"

namespace muster {
namespace {

// Python takes seconds to load Ray, and a dashboard that is busy to answer.
constexpr absl::Duration kRayPatience = absl::Seconds(30);
constexpr absl::Duration kRaySubmitPatience = absl::Minutes(2);
constexpr absl::Duration kRayAgentsPatience = absl::Seconds(10);
constexpr size_t kMostRayWords = 1000;  // bytes of what Ray says of an end that are shown

std::string RayValue(const std::vector<std::string>& environment, const std::string& name) {
  for (const std::string& variable : environment)
    if (absl::StartsWith(variable, absl::StrCat(name, "="))) return variable.substr(name.size() + 1);
  return "";
}

std::string AtOf(const std::string& at, const std::vector<std::string>& environment) {
  if (!at.empty()) return at;
  const auto driver = ReadDriverVariables(environment);
  return driver.ok() ? driver->at : PlaceOfRay({}, environment);
}

// The address is said anew, which these variables would replace; muster's may have a secret.
std::vector<std::string> ClientEnvironment(const std::vector<std::string>& environment) {
  std::vector<std::string> own;
  std::copy_if(environment.begin(), environment.end(), std::back_inserter(own), [](const std::string& variable) {
    for (const char* name : {"RAY_ADDRESS=", "RAY_API_SERVER_ADDRESS=", "MUSTER_"})
      if (absl::StartsWith(variable, name)) return false;
    return true;
  });
  return own;
}

std::string LastLineOf(const std::string& text) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipWhitespace());
  return lines.empty() ? "" : OneLine(lines.back(), kMostRayWords);
}

JobNews NewsOfRay(const std::string& status, const std::string& message) {
  JobNews news{.phase = JobPhase::kEnded, .text = status};
  if (status == "PENDING") news.phase = JobPhase::kWaits;
  if (status == "RUNNING") news.phase = JobPhase::kRuns;
  news.cancelled = status == "STOPPED";
  const std::string said = status == "FAILED" ? LastLineOf(message) : "";
  if (!said.empty()) absl::StrAppend(&news.text, " (", said, ")");
  return news;
}

// The program says what is wrong in {"error": KIND, "text": …}.
absl::Status ErrorOfRay(const std::string& kind, const std::string& text, const RayPlace& place) {
  if (kind == "no_ray")
    return absl::NotFoundError(absl::StrCat(
        place.python, " has no Ray: pip install 'ray[default]' there, or say which python has it (ray: {python: …} or ",
        "--ray python=…); an address http://HOST:8265 needs it only where the job's driver runs: ", text));
  if (kind == "unreachable")
    return absl::UnavailableError(absl::StrCat(
        "no dashboard of Ray answers at ", place.address, " (", text, "); accepted: its address on port 8265 (ray: ",
        "{address: …}, --ray address=… or RAY_ADDRESS), from here, as `ray job list --address` takes it"));
  if (kind == "refused") return absl::InvalidArgumentError(absl::StrCat("Ray refuses it: ", text));
  return absl::UnavailableError(absl::StrCat("Ray at ", place.address, ": ", text));
}

}  // namespace

std::string PlaceOfRay(const RaySetting& setting, const std::vector<std::string>& environment) {
  RayPlace place{.address = setting.address, .python = setting.python};
  if (place.address.empty()) place.address = RayValue(environment, "RAY_ADDRESS");
  if (place.address.empty()) place.address = kUsualRayAddress;
  if (place.python.empty()) place.python = kUsualRayPython;
  return place.text();
}

absl::StatusOr<std::map<std::string, JobNews>> ParseRayJobs(std::string_view answer) {
  const nlohmann::json object = nlohmann::json::parse(answer, nullptr, /*allow_exceptions=*/false);
  std::map<std::string, JobNews> news;
  try {
    for (const auto& [id, job] : object.at("jobs").items())
      news[id] = NewsOfRay(job.at("status").get<std::string>(), job.at("message").get<std::string>());
  } catch (const nlohmann::json::exception&) {
    return absl::UnavailableError("Ray's client has answered something else than expected");
  }
  return news;
}

RayJobs::RayJobs(const std::string& at, const std::vector<std::string>& environment)
    : environment_(environment), place_(RayPlace::Parse(AtOf(at, environment))) {}

JobTerms RayJobs::TermsOf(const HostSetting& setting) const {
  return {.hosts = setting.ray.value_or(RaySetting()).nodes, .signal_cancels = true};
}

absl::StatusOr<std::string> RayJobs::AskClient(const std::vector<std::string>& words, absl::Duration patience) const {
  const Socket program(CreateMemoryFile("muster-ray"));
  const std::string_view text = kRayClientProgram;
  if (Uninterrupted([&] { return write(program.fd(), text.data(), text.size()); }) != static_cast<ssize_t>(text.size()))
    return absl::UnavailableError("no memory for the program that asks Ray");
  std::vector<std::string> command = {place_.python, absl::StrCat("/proc/", getpid(), "/fd/", program.fd())};
  command.insert(command.end(), words.begin(), words.end());
  const auto output = RunToItsEnd(command, ClientEnvironment(environment_), patience);
  if (absl::IsNotFound(output.status()) || absl::IsPermissionDenied(output.status()))
    return ErrorOfRay("no_ray", std::string(output.status().message()), place_);
  if (absl::IsDeadlineExceeded(output.status()))
    return ErrorOfRay("unreachable", absl::StrCat("nothing within ", absl::FormatDuration(patience)), place_);
  RETURN_IF_ERROR(output.status());
  const nlohmann::json answer = nlohmann::json::parse(output->out, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object())
    return ErrorOfRay(
        "failed", absl::StrCat(place_.python, " ", output->status.ToString(), ": ", LastLineOf(output->err)), place_);
  if (!answer.contains("error")) return output->out;
  return ErrorOfRay(answer.value("error", ""), OneLine(answer.value("text", ""), kMostRayWords), place_);
}

absl::StatusOr<std::string> RayJobs::Submit(const std::string& script, const std::string& after) {
  RETURN_IF_ERROR(PutDriver(script, kRayDriverPrograms));
  ASSIGN_OR_RETURN(const std::string answer, AskClient({"submit", place_.address, script, after}, kRaySubmitPatience));
  const nlohmann::json object = nlohmann::json::parse(answer, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object() || !object.contains("id") || !object["id"].is_string())
    return absl::UnavailableError("Ray's client has answered without the id of a job");
  return object["id"].get<std::string>();
}

absl::StatusOr<std::string> RayJobs::WouldTake(const std::string& /*script_text*/) {
  ASSIGN_OR_RETURN(const std::string answer, AskClient({"version", place_.address}, kRayPatience));
  const nlohmann::json object = nlohmann::json::parse(answer, nullptr, /*allow_exceptions=*/false);
  return absl::StrCat("version ", object.value("version", "?"), " answers at ", place_.address);
}

absl::StatusOr<std::map<std::string, JobNews>> RayJobs::Look(const std::vector<std::string>& ids) {
  std::vector<std::string> words = {"look", place_.address};
  words.insert(words.end(), ids.begin(), ids.end());
  ASSIGN_OR_RETURN(const std::string answer, AskClient(words, kRayPatience));
  ASSIGN_OR_RETURN(auto news, ParseRayJobs(answer));
  for (const std::string& id : ids) news.try_emplace(id);
  return news;
}

absl::Status RayJobs::End(const std::string& id, JobEnd /*how*/) {
  return AskClient({"stop", place_.address, id}, kRayPatience).status();
}

absl::Status RayJobs::Free(const std::string& id) {
  return AskClient({"free", place_.address, id}, kRayPatience).status();
}

absl::StatusOr<OwnJob> RayJobs::Own() {
  ASSIGN_OR_RETURN(const DriverVariables driver, ReadDriverVariables(environment_));
  OwnJob own{.id = driver.job, .hosts = {}};
  for (const auto& [name, address] : driver.hosts) own.hosts.push_back(name);
  return own;
}

bool RayJobs::EndLeftSteps(const std::string& /*id*/) { return EndAllOfDriver(environment_, kRayAgentsPatience); }

absl::Status RayJobs::Requeue(const std::string& /*id*/) {
  return absl::UnimplementedError("Ray doesn't begin a job anew");
}

}  // namespace muster
