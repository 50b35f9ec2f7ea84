#include "muster/launch/engines/ray/ray_jobs.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/environment_list.h"
#include "muster/launch/engines/driver/client_program.h"
#include "muster/launch/engines/driver/driver_engine.h"
#include "muster/launch/engines/driver/driver_variables.h"
#include "muster/launch/engines/ray/ray_programs.h"

namespace muster {
namespace {

// Python takes seconds to load Ray, and a dashboard that is busy to answer.
constexpr absl::Duration kRayPatience = absl::Seconds(30);
constexpr absl::Duration kRaySubmitPatience = absl::Minutes(2);
constexpr absl::Duration kRayAgentsPatience = absl::Seconds(10);

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

// `exit_code`: null, or that of Python's subprocess, -9 after SIGKILL.
JobNews NewsOfRay(const std::string& status, const std::string& message, const nlohmann::json& exit_code) {
  JobNews news{.phase = JobPhase::kEnded, .text = status};
  if (status == "PENDING") news.phase = JobPhase::kWaits;
  if (status == "RUNNING") news.phase = JobPhase::kRuns;
  news.cancelled = status == "STOPPED";
  if (exit_code.is_number_integer()) news.exit_code = exit_code < 0 ? 128 - exit_code.get<int>() : exit_code.get<int>();
  const std::string said = status == "FAILED" ? LastLineSaid(message) : "";
  if (!said.empty()) absl::StrAppend(&news.text, " (", said, ")");
  return news;
}

// The program says what is wrong in {"error": KIND, "text": …}. `submits`: it was to submit a job.
absl::Status ErrorOfRay(const std::string& kind, const std::string& text, const RayPlace& place, bool submits) {
  if (kind == "no_ray")
    return absl::NotFoundError(absl::StrCat(
        place.python, " has no Ray: pip install 'ray[default]' there, or say which python has it (ray: {python: …} or ",
        "--ray python=…); an address http://HOST:8265 needs it only where the job's driver runs: ", text));
  if (kind == "unreachable")
    return absl::Status(
        submits ? absl::StatusCode::kNotFound : absl::StatusCode::kUnavailable,
        absl::StrCat("no dashboard of Ray answers at ", place.address, " (", text,
                     "); accepted: its address on port 8265 (ray: ",
                     "{address: …}, --ray address=… or RAY_ADDRESS), from here, as `ray job list --address` takes it"));
  if (kind == kLateClient)
    return absl::UnavailableError(
        absl::StrCat("Ray hasn't answered at ", place.address, " (", text, ")",
                     submits ? "; it may have taken the job: `ray job list` with this address says so" : "",
                     absl::StartsWith(place.address, "http") ? "" : "; is its dashboard at http://HOST:8265?"));
  if (kind == "refused") return absl::InvalidArgumentError(absl::StrCat("Ray refuses it: ", text));
  return absl::UnavailableError(absl::StrCat("Ray at ", place.address, ": ", text));
}

}  // namespace

std::string PlaceOfRay(const RaySetting& setting, const std::vector<std::string>& environment) {
  RayPlace place{.address = setting.address, .python = setting.python};
  if (place.address.empty()) place.address = VariableIn(environment, "RAY_ADDRESS");
  if (place.address.empty()) place.address = kUsualRayAddress;
  if (place.python.empty()) place.python = kUsualRayPython;
  return place.text();
}

absl::StatusOr<std::map<std::string, JobNews>> ParseRayJobs(std::string_view answer) {
  const nlohmann::json object = nlohmann::json::parse(answer, nullptr, /*allow_exceptions=*/false);
  std::map<std::string, JobNews> news;
  try {
    for (const auto& [id, job] : object.at("jobs").items())
      news[id] = NewsOfRay(job.at("status").get<std::string>(), job.at("message").get<std::string>(),
                           job.value("exit_code", nlohmann::json()));
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

absl::StatusOr<std::string> RayJobs::AskClient(const std::vector<std::string>& words, absl::Duration patience,
                                               bool submits) const {
  return RunClientProgram(
      {.system = "Ray",
       .text = kRayClientProgram,
       .python = place_.python,
       .environment = ClientEnvironment(environment_),
       .missing = "no_ray",
       .error_of = [&](const std::string& kind,
                       const std::string& text) { return ErrorOfRay(kind, text, place_, submits); }},
      words, patience);
}

absl::StatusOr<std::string> RayJobs::Submit(const std::string& script, const std::string& after) {
  RETURN_IF_ERROR(PutDriver(script, kRayDriverPrograms));
  ASSIGN_OR_RETURN(const std::string answer, AskClient({"submit", place_.address, script, after}, kRaySubmitPatience,
                                                       /*submits=*/true));
  return IdInAnswer("Ray", answer);
}

absl::StatusOr<std::string> RayJobs::WouldTake(const std::string& /*script_text*/) {
  ASSIGN_OR_RETURN(const std::string answer, AskClient({"version", place_.address}, kRayPatience));
  const nlohmann::json object = nlohmann::json::parse(answer, nullptr, /*allow_exceptions=*/false);
  return absl::StrCat("version ", TextIn(object, "version"), " answers at ", place_.address);
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

absl::StatusOr<OwnJob> RayJobs::Own() { return OwnJobOfDriver(environment_); }

bool RayJobs::EndLeftSteps(const std::string& /*id*/) { return EndAllOfDriver(environment_, kRayAgentsPatience); }

absl::Status RayJobs::Requeue(const std::string& /*id*/) {
  return absl::UnimplementedError("Ray doesn't begin a job anew");
}

}  // namespace muster
