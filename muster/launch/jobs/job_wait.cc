#include "muster/launch/jobs/job_wait.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>

#include "absl/strings/str_cat.h"
#include "muster/base/text/one_line.h"

namespace muster {
namespace {

constexpr absl::Duration kMostPauseOfJob = absl::Minutes(5);
constexpr double kJitter = 0.25;
constexpr int kMostDoublings = 20;
constexpr size_t kMostOfWhy = 1500;  // bytes

double RandomChance() {
  std::random_device numbers;
  return static_cast<double>(numbers()) / static_cast<double>(std::random_device::max());
}

double SecondsOf(absl::Time time) { return absl::ToDoubleSeconds(time - absl::UnixEpoch()); }

}  // namespace

absl::Duration PauseBeforeTry(int tries, absl::Duration first, double chance) {
  const double doubled = std::exp2(std::clamp(tries - 1, 0, kMostDoublings));
  return std::min(first * doubled, std::max(first, kMostPauseOfJob)) * (1 + kJitter * (2 * chance - 1));
}

void NoteNoRoom(JobOfRun& job, const std::string& why, const JobTerms& terms, absl::Time now) {
  ++job.tries;
  job.no_room = OneLine(why, kMostOfWhy);
  PutOff(job, terms, now);
}

void NoteTurn(JobOfRun& job, int at_a_time) {
  job.turn = at_a_time;
  job.no_room = at_a_time == 1 ? "another run of its grid comes first"
                               : absl::StrCat(at_a_time, " other runs of its grid come first");
  job.again_at = 1;  // nothing but its turn holds it up
}

void PutOff(JobOfRun& job, const JobTerms& terms, absl::Time now) {
  job.again_at = SecondsOf(now + PauseBeforeTry(job.tries, terms.start_pause, RandomChance()));
}

bool WaitsForSubmission(const Home& home, const RunRecord& run) {
  for (int i = run.runs > 0 ? 1 : 0; i <= run.runs; ++i) {
    const auto job = ReadJobFile(home.job(i == 0 ? run.id : ExperimentId{run.id.number, i}));
    if (job.ok() && job->has_value() && HasNoJob(**job)) return true;
  }
  return false;
}

bool MayTryAgain(const JobOfRun& job, const JobTerms& terms) {
  return !terms.start_tries.has_value() || job.tries < *terms.start_tries;
}

bool IsDue(const JobOfRun& job, absl::Time now) { return job.again_at <= SecondsOf(now); }

std::string WhyNoJob(const JobOfRun& job) {
  if (job.tries == 0) return job.no_room;
  return absl::StrCat(job.no_room, "; tried ", job.tries == 1 ? "once" : absl::StrCat(job.tries, " times"));
}

std::string WhenAgain(const JobOfRun& job, absl::Time now) {
  if (job.turn > 0) return "once one of them has ended";
  const double left = std::max(0.0, std::ceil(job.again_at - SecondsOf(now)));
  return left == 0 ? "it is tried again now"
                   : absl::StrCat("again in ", static_cast<int64_t>(std::min(left, 1e9)), " s");
}

}  // namespace muster
