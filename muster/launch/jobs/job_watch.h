// What the engines say of jobs in which experiments' supervisors are, and what follows when a job has ended without its
// supervisor's word: the run ends, or is submitted once more. Used by every command about experiments, on any host that
// sees the home; the supervisors write their own runs' states themselves. Not thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "muster/base/clock.h"
#include "muster/launch/engines/job_engine.h"
#include "muster/launch/registry/files/job_file.h"
#include "muster/launch/registry/home.h"
#include "muster/launch/registry/registry.h"

namespace muster {

struct RunInJob {
  JobOfRun job;
  JobNews news;
  std::string text;  // "job 17 of Slurm: PENDING (Resources)"
  // What stays the same while it waits, so that it needn't be said again.
  const std::string& lasting_text() const {
    if (job.again_at > 0) return news.text;
    return news.lasting.empty() ? text : news.lasting;
  }
};

class JobWatch {
 public:
  // Returns the engine of a job, by its name and place, or null.
  using MakeEngine = std::function<std::unique_ptr<JobEngine>(const std::string& name, const std::string& at)>;
  // Borrows `registry` and `clock`, by which runs without a job wait; they must outlive it.
  JobWatch(const Home& home, Registry& registry, MakeEngine make, const Clock& clock = RealClock())
      : home_(home), registry_(registry), make_(std::move(make)), clock_(clock) {}

  // Asks about the jobs of all runs that haven't ended, those of `number` alone if it isn't 0, and does what follows.
  // Without such runs it asks nobody. Returns lines for the user about what it has done; what can't be asked or written
  // now is in the runs' texts, and is tried again the next time.
  std::vector<std::string> Look(int64_t number = 0);

  // Whether a run without a job may be submitted, as far as its grid goes. Asks nobody. True for any other run.
  bool IsItsTurn(const ExperimentId& id);

  // For the process that fetches anyway from jobs that share no folder with this host: Look doesn't.
  void LeaveFetching() { fetches_ = false; }
  // Returns what the last Look has found; null: the run isn't in a job, or has ended.
  const RunInJob* Find(const ExperimentId& id) const;
  // Returns the engine of a job; null: this muster has none of that name.
  JobEngine* EngineOf(const JobOfRun& job);

 private:
  // A supervisor that has renewed its state within this may live in a job that this host's engine doesn't know.
  static constexpr absl::Duration kSurelyAlive = absl::Seconds(15);

  void Collect(int64_t number);
  // Says why a run has no job now.
  void NoteNoJob(RunInJob& run);
  using EngineKey = std::pair<std::string, std::string>;  // its name and place
  void AskEngine(const EngineKey& key, JobEngine& engine);
  // Fetches what is new of a run whose job shares no folder with this host.
  void FetchFar(const ExperimentId& id, RunInJob& run, JobEngine& engine);
  // A run whose tasks have begun doesn't wait for hosts that it can do without, as that of an evaluator.
  void NoteIfInPart(const ExperimentId& id, JobNews& news) const;
  // Adds what the job's script says that it waits for.
  void NoteWaits(const ExperimentId& id, RunInJob& run) const;
  // Returns the lines about it.
  absl::StatusOr<std::vector<std::string>> Follow(const ExperimentId& id, RunInJob& run, JobEngine& engine);
  // Whether a job that the engine doesn't know, or not any more, has ended.
  bool MayJudgeUnknown(const ExperimentId& id, RunInJob& run, RunState state) const;
  bool IsItsTurn(const ExperimentId& id, const JobOfRun& job) const;
  // Gives a job back that has only a part of its hosts.
  absl::StatusOr<std::vector<std::string>> GiveBack(const ExperimentId& id, RunInJob& run, JobEngine& engine);
  // Submits a run that has no job, under a new name.
  absl::StatusOr<std::vector<std::string>> TryAgain(const ExperimentId& id, RunInJob& run, JobEngine& engine);
  absl::StatusOr<std::vector<std::string>> AfterNoJob(const ExperimentId& id, RunInJob& run, const JobTerms& terms,
                                                      const absl::Status& why);
  absl::StatusOr<JobTerms> TermsOf(const ExperimentId& id, const JobEngine& engine);
  absl::StatusOr<std::vector<std::string>> SubmitAgain(const ExperimentId& id, RunInJob& run, JobEngine& engine);
  // Ends the job that was just submitted if somebody has asked for the run's end. Returns whether that is so.
  absl::StatusOr<bool> EndIfKilled(const ExperimentId& id, RunInJob& run, JobEngine& engine);
  absl::StatusOr<std::vector<std::string>> EndRun(const ExperimentId& id, const RunInJob& run, const JobEngine& engine);
  // Returns why a job that has ended has never had a supervisor, as far as its script or the engine says it; else "".
  std::string WhyNotBegun(const ExperimentId& id, const RunInJob& run) const;
  // Whether the file isn't there into which the job should write.
  bool HasNoOutput(const ExperimentId& id) const;
  // Returns where to look when nobody knows why the job has ended, "; …", or "".
  std::string HintAtHome(const ExperimentId& id) const;
  std::string GoesOn(const ExperimentId& id);
  std::string LastWords(const ExperimentId& id) const;

  const Home home_;
  Registry& registry_;
  const MakeEngine make_;
  const Clock& clock_;
  std::map<EngineKey, std::unique_ptr<JobEngine>> engines_;
  std::map<ExperimentId, RunInJob> runs_;
  bool fetches_ = true;
  absl::Time fetch_until_;  // so long may one Look do that
};

}  // namespace muster
