// Ends a run in a job for `muster kill`: by a request to its supervisor; if that doesn't answer, by a signal of the
// engine to the job's script; in the end the engine cancels the job. It takes the steps that are due and never waits
// for them. Not thread-safe.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/launch/jobs/job_watch.h"
#include "muster/launch/registry/home.h"
#include "muster/launch/registry/registry.h"

namespace muster {

class JobKill {
 public:
  // How long a supervisor may take to see a request, and how much longer than its tasks may take to end it may need.
  static constexpr absl::Duration kAnswerPatience = absl::Seconds(10);
  static constexpr absl::Duration kEndPatience = absl::Seconds(15);

  struct Target {
    ExperimentId id;
    RunInJob run;
    absl::Duration stop_grace;  // what its tasks may take to end
  };
  // What it works with, borrowed.
  struct Means {
    const Home& home;
    Registry& registry;
    JobWatch& jobs;
    const Clock& clock;
    std::function<void(const std::string& line)> say;  // to the user, what the engine is told
  };
  JobKill(const Means& means, Target target) : means_(means), id_(target.id), target_(std::move(target)) {}

  // Writes a request for a supervisor that may live; cancels the job otherwise, as while it waits. `now`: to kill the
  // tasks without asking them. An error: the engine can't be told, or the run's folder can't be written.
  [[nodiscard]] absl::Status Begin(bool now);
  // Returns whether the supervisor was asked.
  bool asked_supervisor() const { return asked_supervisor_; }
  // Asks the supervisor to kill its tasks, and gives it its time anew.
  [[nodiscard]] absl::Status KillNow();
  // Returns whether the run has ended. Takes the next step if it is due. Errors are those of Begin.
  absl::StatusOr<bool> HasEndedNow();

 private:
  // Whether the supervisor has written nothing for so long that it doesn't live.
  bool IsSilent() const;
  // Where the home has no room for a request, the engine asks or cancels at once: the note of the kill, an empty file,
  // is there already.
  absl::Status Request(bool now);
  absl::Status End(JobEnd how);
  // `why`: why the supervisor isn't asked itself, or not any more; "": nothing is said of that.
  absl::Status Ask(const std::string& why);
  // Ends a run whose engine is gone, as a cluster may be, and its supervisor, too.
  absl::Status EndWithoutEngine(const absl::Status& why);
  absl::Status Cancel(const std::string& why = "");
  // A run that had no job may have been submitted just when it was killed, by a process that then couldn't end the job.
  absl::Status CancelIfSubmitted();

  const Means means_;
  const ExperimentId id_;
  Target target_;
  absl::Time began_;     // the last request
  bool now_ = false;     // which said that
  std::string request_;  // not answered yet
  bool asked_supervisor_ = false;
  bool asked_script_ = false;
  bool cancelled_ = false;
};

}  // namespace muster
