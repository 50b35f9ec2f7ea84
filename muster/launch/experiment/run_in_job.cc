// What ExperimentRun does because its supervisor is in a job of an engine, which may end.
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "muster/base/clock.h"
#include "muster/base/files/file_system.h"
#include "muster/launch/experiment/experiment_run.h"
#include "muster/launch/spec/go_on_command.h"

namespace muster {
namespace {

// Between two questions when the job ends.
constexpr absl::Duration kAskAgain = absl::Minutes(10);

}  // namespace

std::string EngineOf(const RunOrder& order) {
  if (order.hosts.hosts.empty() || order.setting.job.has_value()) return order.setting.engine;
  return order.hosts.command.has_value() ? kCommandEngine : kSshEngine;
}

void ExperimentRun::MindTheJob() {
  if (tasks_.interrupts() > 0) asked_at_ = std::min(asked_at_, RealClock().Now());
  if (!order_.setting.job.has_value() || time_is_over_ || tasks_.interrupts() > 0) return;
  const absl::Time now = RealClock().Now();
  if (now < std::min(job_ends_at_, ask_job_at_)) return;
  // It may have been given more time since, or the engine hasn't answered before.
  job_ends_at_ = order_.setting.job->end_at();
  ask_job_at_ = now + kAskAgain;
  if (now < job_ends_at_) return;
  time_is_over_ = true;
  kill(getpid(), SIGTERM);
}

// What has ended the job itself, if it was that, is asked for later, as the engine may not know it yet.
std::string ExperimentRun::WhyInterrupted() const {
  if (!order_.setting.job.has_value() || pulse_.was_asked_to_end() || order_.setting.job->was_killed()) return "killed";
  const bool over = time_is_over_ || PosixFileSystem().Exists(order_.setting.job->notice_file);
  return over ? "the job's time is over" : absl::StrCat(order_.setting.job->name, " was told to end");
}

void ExperimentRun::NoteInterruption() {
  RunRecord& run = progress_.run();
  run.reason = "it was killed";
  if (!order_.setting.job.has_value() || pulse_.was_asked_to_end() || order_.setting.job->was_killed()) return;
  const JobLimits& job = *order_.setting.job;
  time_is_over_ = time_is_over_ || PosixFileSystem().Exists(job.notice_file);
  const EndingOfJob ending = time_is_over_ ? EndingOfJob() : job.why_ending();
  job_failed_ = ending.what == EndingOfJob::What::kEnded;
  if (job_failed_ || ending.what == EndingOfJob::What::kCancelled) {
    run.reason = absl::StrCat("its ", job.name, job_failed_ ? " was ended: " : " was cancelled", ending.reason,
                              job_failed_ ? GoesOnBy(run.id.ToString(), order_.file.name) : "");
    return logs_.Say(run.reason);
  }
  end_.begun_anew = ending.what == EndingOfJob::What::kBegunAnew;
  end_.doubtful = ending.what == EndingOfJob::What::kUnknown;
  // A signal alone is a notice, too: sites send it before they take the nodes away.
  run.reason = absl::StrCat(time_is_over_ ? "the time of its " : "its ", job.name,
                            time_is_over_     ? " was over"
                            : end_.begun_anew ? " is begun anew"
                                              : " was sent SIGTERM");
  time_is_over_ = true;
  end_.goes_on = job.goes_on || end_.begun_anew;
  if (!end_.goes_on) absl::StrAppend(&run.reason, GoesOnBy(run.id.ToString(), order_.file.name));
  logs_.Say(end_.goes_on && !end_.begun_anew ? absl::StrCat(run.reason, "; it goes on") : run.reason);
}

}  // namespace muster
