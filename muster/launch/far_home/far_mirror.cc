#include "muster/launch/far_home/far_mirror.h"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/launch/far_home/far_places.h"
#include "muster/launch/far_home/parts_question.h"
#include "muster/launch/registry/files/job_file.h"
#include "muster/launch/registry/files/other_home.h"
#include "muster/launch/registry/files/record_file.h"

namespace muster {
namespace {

constexpr int kMirrorPauseMs = 20;
constexpr size_t kMostProblems = 500;
constexpr double kMostEndingSeconds = 24 * 3600;  // that tasks are believed to have taken to end

// What the supervisor has noted of its job, in the file of this side, as far as the job may say it: how often the run
// has gone on is counted by those who submit it.
absl::Status MergeJob(const Home& home, const ExperimentId& id, const nlohmann::json& told) {
  auto here = ReadJobFile(home.job(id));
  if (!here.ok() || !here->has_value() || !told.is_object() || told.at("id") != (*here)->id) return absl::OkStatus();
  JobOfRun job = **here;
  job.wants_another = told.at("wants_another").get<bool>();
  job.doubtful = told.at("doubtful").get<bool>();
  const double ending = told.at("ending_seconds").get<double>();
  if (ending >= 0 && ending <= kMostEndingSeconds) job.ending_seconds = ending;
  return job == **here ? absl::OkStatus() : WriteJobFile(home.job(id), job);
}

}  // namespace

// Waits for others by the machine's clock.
absl::StatusOr<RunLock> HoldFetching(const Home& home, const ExperimentId& id, absl::Duration patience) {
  for (const absl::Time until = RealClock().Now() + patience;; poll(nullptr, 0, kMirrorPauseMs)) {
    absl::StatusOr<RunLock> lock = RunLock::Take(FarFile(home, id, kFarLockName));
    if (lock.ok()) fcntl(lock->fd(), F_SETFD, FD_CLOEXEC);  // the engine's programs may outlive this process
    if (!absl::IsFailedPrecondition(lock.status())) return lock;
    if (RealClock().Now() >= until) return absl::UnavailableError("another process fetches what is new in the job");
  }
}

std::optional<absl::Duration> SinceFetched(const Home& home, const ExperimentId& id) {
  return AgeOfFile(FarFile(home, id, kFarFreshName));
}

absl::StatusOr<FarNews> FarMirror::Refresh(const Options& options) {
  ASSIGN_OR_RETURN(const RunLock lock, HoldFetching(home_, id_, options.patience));
  // A process that gives the job back writes that while it holds the same lock.
  const auto job = ReadJobFile(home_.job(id_));
  if (job.ok() && job->has_value() && ((*job)->id != job_ || (*job)->again_at > 0))
    return absl::UnavailableError(absl::StrCat("job ", job_, " isn't the run's any more"));
  if (options.fresh > absl::ZeroDuration()) {
    const std::optional<absl::Duration> since = SinceFetched(home_, id_);
    if (since.has_value() && *since < options.fresh) return FarNews{.fresh = true};
  }
  return Ask(options);
}

absl::StatusOr<FarNews> FarMirror::Ask(const Options& options) {
  const absl::Time until = clock_.Now() + options.patience;
  FarNews news;
  // If the run ends between two pages, its end comes with the next walk.
  do {
    RETURN_IF_ERROR(AskForPages(options, until, news));
  } while (news.more && clock_.Now() < until);
  static_cast<void>(ReplaceFile(FarFile(home_, id_, kFarFreshName), "", Durability::kProcess));
  return news;
}

absl::Status FarMirror::AskForPages(const Options& options, absl::Time until, FarNews& news) {
  Walk walk;
  bool is_last = false;
  news.more = false;
  news.problems.clear();
  while (!is_last) {
    ASSIGN_OR_RETURN(const std::string last, AskForPage(options, walk, news));
    if (walk.more && clock_.Now() < until) continue;
    news.more = news.more || walk.more;
    is_last = last.empty();
    if (is_last && walk.ended && !walk.whole) news.more = true;
    walk.whole = walk.whole && walk.ended && !walk.cut;
    walk.after = last;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> FarMirror::AskForPage(const Options& options, Walk& walk, FarNews& news) {
  ASSIGN_OR_RETURN(FarQuestion question, PartsQuestion(home_, id_, job_, walk.after));
  if (options.collected) question.head["collected"] = true;
  question.head["rest"] = walk.whole && question.last.empty();
  ASSIGN_OR_RETURN(const FarMessage answer,
                   AskFar(engine_, job_, "parts", id_.ToString(), {.head = std::move(question.head)}));
  try {
    RETURN_IF_ERROR(Take(answer, options, walk, news));
  } catch (const nlohmann::json::exception&) {
    return absl::DataLossError("the job's answer isn't one of muster home parts");
  }
  return question.last;
}

absl::Status FarMirror::Take(const FarMessage& answer, const Options& options, Walk& walk, FarNews& news) {
  ASSIGN_OR_RETURN(const std::vector<FarPart> parts, ParseParts(answer));
  for (const nlohmann::json& one : answer.head.at("differs")) {
    const std::string place = one.get<std::string>();
    if (!FarPlaceOf(place).has_value()) return NotOfAnAnswer(place);
    if (news.problems.size() >= kMostProblems) continue;
    const std::string problem = absl::StrCat(place, " isn't what it was in the job, and isn't fetched any more");
    if (std::find(news.problems.begin(), news.problems.end(), problem) == news.problems.end())
      news.problems.push_back(problem);
  }
  // Before records that name paths there.
  const OtherHome other{.path = answer.head.at("home").get<std::string>(), .elsewhere = true};
  RETURN_IF_ERROR(WriteOtherHome(home_.other_home(id_), other));
  if (id_.run > 0) RETURN_IF_ERROR(WriteOtherHome(home_.other_home({.number = id_.number}), other));
  for (const FarPart& part : parts) RETURN_IF_ERROR(WritePart(home_, id_, part));
  BoundLogs(home_, id_, options.log_bytes);
  if (const auto job = answer.head.find("job"); job != answer.head.end()) RETURN_IF_ERROR(MergeJob(home_, id_, *job));
  news.over = answer.head.at("over").get<bool>();
  walk.ended = answer.head.value("ended", false);
  // An answer that brings nothing has nothing more: otherwise the job could be asked for ever.
  walk.cut = answer.head.at("more").get<bool>();
  walk.more = walk.cut && !parts.empty();
  return absl::OkStatus();
}

}  // namespace muster
