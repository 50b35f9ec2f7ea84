#include "muster/launch/engines/spark/spark_jobs.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/bytes.h"
#include "muster/base/clock.h"
#include "muster/base/files/file_system.h"
#include "muster/base/os/uninterrupted.h"
#include "muster/base/status_macros.h"
#include "muster/launch/engines/driver/client_program.h"
#include "muster/launch/engines/driver/driver_engine.h"
#include "muster/launch/engines/driver/driver_variables.h"
#include "muster/launch/engines/spark/spark_programs.h"
#include "muster/launch/system/pid_fd.h"

namespace muster {
namespace {

// A master that doesn't answer takes five seconds, and there may be several.
constexpr absl::Duration kSparkPatience = absl::Seconds(60);
constexpr absl::Duration kSparkAgentsPatience = absl::Seconds(10);
// How long a driver that is cancelled may take before it is killed: for its end it waits for the executors.
constexpr absl::Duration kCancelPatience = absl::Seconds(5);
constexpr char kScriptName[] = "/job.sh";

std::string OwnHost() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

SparkPlace SparkPlaceIn(const std::string& at, const std::vector<std::string>& environment) {
  if (!at.empty()) return SparkPlace::Parse(at);
  const auto driver = ReadDriverVariables(environment);
  return SparkPlace::Parse(driver.ok() ? driver->at : PlaceOfSpark({}));
}

// muster's variables may have a secret, which Spark's processes must not get.
std::vector<std::string> WithoutMusters(const std::vector<std::string>& environment) {
  std::vector<std::string> own;
  std::copy_if(environment.begin(), environment.end(), std::back_inserter(own),
               [](const std::string& variable) { return !absl::StartsWith(variable, "MUSTER_"); });
  return own;
}

// The program says what is wrong in {"error": KIND, "text": …}.
absl::Status ErrorOfSpark(const std::string& kind, const std::string& text, const SparkPlace& place) {
  if (kind == "no_spark")
    return absl::NotFoundError(absl::StrCat(
        place.python, " has no pyspark: pip install pyspark there, say which python has it (spark: {python: …} or ",
        "--spark python=…), or set SPARK_HOME",
        absl::EndsWith(text, " has no pyspark") ? "" : absl::StrCat(": ", text)));
  if (kind == "no_java")
    return absl::NotFoundError(absl::StrCat("Spark needs Java: install a JRE, or set JAVA_HOME (", text, ")"));
  if (kind == "unreachable")
    return absl::NotFoundError(
        absl::StrCat("no master of Spark answers at ", place.address, " (", text,
                     "); accepted: its address as spark-submit --master takes it, from here (spark: {address: …}, ",
                     "--address …)"));
  if (kind == "refused") return absl::InvalidArgumentError(absl::StrCat("Spark can't take it: ", text));
  return absl::UnavailableError(absl::StrCat("the program that starts jobs of Spark: ", text));
}

JobNews NewsOfDriver(const std::string& id) {
  const auto driver = SparkDriverId::Parse(id);
  if (!driver.has_value()) return {.phase = JobPhase::kEnded, .text = "it never had a driver"};
  if (!driver->IsHere()) return {};
  if (driver->Open().valid()) return {.phase = JobPhase::kRuns, .text = "RUNNING"};
  return {.phase = JobPhase::kEnded, .text = absl::StrCat("its driver has ended, ", kSparkLog, " says more")};
}

absl::Status NotHere(const SparkDriverId& driver) {
  return absl::UnavailableError(
      absl::StrCat("its driver is process ", driver.process.pid, " of ", driver.host, ": ask there"));
}

bool HasEndedWithin(int pid_fd, absl::Duration patience) {
  pollfd ended = {.fd = pid_fd, .events = POLLIN, .revents = 0};
  const auto wait = static_cast<int>(absl::ToInt64Milliseconds(patience));
  return Uninterrupted([&] { return poll(&ended, 1, wait); }) > 0;
}

}  // namespace

std::string PlaceOfSpark(const SparkSetting& setting) {
  return SparkPlace{.address = setting.address, .python = setting.python.empty() ? kUsualSparkPython : setting.python}
      .text();
}

std::optional<SparkDriverId> SparkDriverId::Parse(const std::string& text) {
  const size_t last = text.rfind('-');
  const size_t before = last == std::string::npos || last == 0 ? std::string::npos : text.rfind('-', last - 1);
  SparkDriverId id;
  if (before == std::string::npos || !absl::SimpleAtoi(text.substr(before + 1, last - before - 1), &id.process.pid) ||
      !absl::SimpleAtoi(text.substr(last + 1), &id.process.start) || id.process.pid <= 0)
    return std::nullopt;
  id.host = text.substr(0, before);
  return id;
}

bool SparkDriverId::IsHere() const { return host == OwnHost(); }

Socket SparkDriverId::Open() const {
  if (!IsHere()) return Socket();
  const auto pid = static_cast<pid_t>(process.pid);
  // Opens the descriptor first: the process keeps its number until it is closed.
  Socket found(OpenPidFd(pid));
  if (!found.valid() || IdentifyProcess(pid) != process || HasEndedWithin(found.fd(), absl::ZeroDuration()))
    return Socket();
  return found;
}

SparkJobs::SparkJobs(const std::string& at, const std::vector<std::string>& environment)
    : environment_(environment), place_(SparkPlaceIn(at, environment)) {}

JobTerms SparkJobs::TermsOf(const HostSetting& setting) const {
  return {.hosts = setting.spark.value_or(SparkSetting()).nodes, .signal_cancels = true};
}

absl::StatusOr<std::string> SparkJobs::AskClient(const std::vector<std::string>& words, absl::Duration patience) const {
  return RunClientProgram({.system = "Spark",
                           .text = kSparkClientProgram,
                           .python = place_.python,
                           .environment = WithoutMusters(environment_),
                           .missing = "no_spark",
                           .error_of = [this](const std::string& kind,
                                              const std::string& text) { return ErrorOfSpark(kind, text, place_); }},
                          words, patience);
}

absl::StatusOr<std::string> SparkJobs::Submit(const std::string& script, const std::string& after) {
  RETURN_IF_ERROR(PutDriver(script, kSparkDriverPrograms));
  std::vector<std::string> words = {"submit", place_.address.empty() ? "-" : place_.address, script};
  if (!after.empty()) words.push_back(after);
  ASSIGN_OR_RETURN(const std::string answer, AskClient(words, kSparkPatience));
  return IdInAnswer("Spark", answer);
}

absl::StatusOr<std::string> SparkJobs::WouldTake(const std::string& /*script_text*/) {
  ASSIGN_OR_RETURN(const std::string answer,
                   AskClient({"check", place_.address.empty() ? "-" : place_.address}, kSparkPatience));
  const nlohmann::json object = nlohmann::json::parse(answer, nullptr, /*allow_exceptions=*/false);
  return absl::StrCat("version ", TextIn(object, "spark"), " of ", place_.python, ", with ", TextIn(object, "java"),
                      "; whether ", place_.address.empty() ? "the master of spark-defaults.conf" : place_.address,
                      " has as many slots is seen when the job begins");
}

absl::StatusOr<std::map<std::string, JobNews>> SparkJobs::Look(const std::vector<std::string>& ids) {
  std::map<std::string, JobNews> news;
  for (const std::string& id : ids) news[id] = NewsOfDriver(id);
  return news;
}

absl::Status SparkJobs::End(const std::string& id, JobEnd how) {
  const auto driver = SparkDriverId::Parse(id);
  if (!driver.has_value()) return absl::OkStatus();
  if (!driver->IsHere()) return NotHere(*driver);
  const Socket process = driver->Open();
  if (!process.valid()) return absl::OkStatus();
  if (SignalPidFd(process.fd(), SIGTERM) != 0) return absl::ErrnoToStatus(errno, "cannot end the job's driver");
  if (how == JobEnd::kCancel && !HasEndedWithin(process.fd(), kCancelPatience)) SignalPidFd(process.fd(), SIGKILL);
  return absl::OkStatus();
}

// Its words have the script, both while that runs and when it has become the driver.
absl::Status SparkJobs::Free(const std::string& id) {
  const auto driver = SparkDriverId::Parse(id);
  if (!driver.has_value()) return absl::OkStatus();
  if (!driver->IsHere()) return NotHere(*driver);
  const Socket process = driver->Open();
  if (!process.valid()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string words,
                   PosixFileSystem().ReadFile(absl::StrCat("/proc/", driver->process.pid, "/cmdline")));
  for (const absl::string_view word : absl::StrSplit(words, '\0')) {
    if (!absl::EndsWith(word, kScriptName)) continue;
    const std::string folder = std::filesystem::path(std::string(word)).parent_path().string();
    return WriteFileAtomically(PosixFileSystem(), absl::StrCat(folder, "/job_free.", id), {});
  }
  return absl::UnavailableError(absl::StrCat("process ", driver->process.pid, " isn't the driver of a job"));
}

absl::StatusOr<OwnJob> SparkJobs::Own() { return OwnJobOfDriver(environment_); }

bool SparkJobs::EndLeftSteps(const std::string& /*id*/) { return EndAllOfDriver(environment_, kSparkAgentsPatience); }

absl::Status SparkJobs::Requeue(const std::string& /*id*/) {
  return absl::UnimplementedError("Spark doesn't begin a job anew");
}

}  // namespace muster
