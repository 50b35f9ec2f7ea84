// The collector of a run whose job shares no folder with its submitter (docs/far_homes.md): sends the experiment into
// the job, fetches what it writes until its end, and lets the job go then. One process for each run, or none. Blocks.
// Not thread-safe.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/launch/jobs/job_watch.h"
#include "muster/launch/registry/files/job_file.h"
#include "muster/launch/registry/home.h"
#include "muster/launch/registry/registry.h"

namespace muster {

class JobCollector {
 public:
  // What it works with, borrowed.
  struct Means {
    const Home& home;
    Registry& registry;
    JobWatch& jobs;
    const Clock& clock;
    std::function<void(const std::string& line)> say;  // what can't be done now
  };
  JobCollector(const Means& means, const ExperimentId& id) : means_(means), id_(id) {}

  // Does what is due. Returns whether nothing is left to do, ever. An error: not now, and maybe later.
  absl::StatusOr<bool> Step();
  // How long to wait before the next step.
  absl::Duration pause() const { return pause_; }

  // Steps until nothing is left to do, and waits by `pause` in between. Returns, too, after an hour without an answer
  // in which no command has looked: the next one starts another collector.
  void Run(const std::function<void(absl::Duration)>& pause);

 private:
  static constexpr absl::Duration kOutputEvery = absl::Seconds(30);

  // Tells each thing once, and only so many: what the job says may be anything. `thing`: by which it is known again.
  void Say(const std::string& line, const std::string& thing);
  absl::StatusOr<bool> AwaitWritten();
  // Ends the job of a run that has ended without one, if it was about to be submitted.
  absl::StatusOr<bool> EndUnwritten();
  absl::StatusOr<bool> StepOf(const JobOfRun& job, JobEngine& engine);
  absl::Status Send(const JobOfRun& job, JobEngine& engine);
  // When the job can't be asked: finds whether there is one.
  absl::StatusOr<bool> AfterSilence(const JobOfRun& job, JobEngine& engine, const absl::Status& why);
  absl::StatusOr<bool> Finish(const JobOfRun& job, JobEngine& engine);
  absl::Status FetchOutputs(const JobOfRun& job, JobEngine& engine, bool at_end, bool& more);
  absl::StatusOr<bool> Release(const JobOfRun& job, JobEngine& engine);
  absl::StatusOr<bool> HasRunEnded();
  // Asks the engine now and then about a job whose run hasn't begun: some of its hosts may never come.
  absl::Status LookAtStart();
  // Whether other runs of its grid come first and the engine needn't be asked about them now.
  bool WaitsForOthers(const JobOfRun& job);
  // Judges the job as every command does.
  absl::StatusOr<bool> LookAndSeeEnd();

  // Whether the run has another job since the last call, or none any more.
  bool HasOtherJob();
  // How long to wait after a step that has gone well.
  absl::Duration UsualPause() const;
  // Whether the engine has been silent about the job of a run that ended long ago: then nobody will ever answer.
  absl::StatusOr<bool> IsGivenUp();

  const Means means_;
  const ExperimentId id_;
  JobOfRun job_;                                  // what HasOtherJob has seen last
  std::string collected_;                         // the job of which all has been fetched
  absl::Time heard_at_ = absl::InfiniteFuture();  // when anything was heard of the job last, or when this began
  absl::Time sent_at_ = absl::InfinitePast();
  absl::Time output_at_ = absl::InfinitePast();
  absl::Time looked_at_ = absl::InfinitePast();
  absl::Duration pause_;
  bool looks_for_unwritten_ = false;  // the run has ended, and it isn't known whether it has a job
  std::set<std::string> said_;
};

}  // namespace muster
