#include "apps/muster/experiment/kill_in_jobs.h"

#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <list>
#include <optional>
#include <set>
#include <string>

#include "apps/muster/experiment/shown_states.h"
#include "apps/muster/terminal/interrupt_fd.h"
#include "muster/base/status_macros.h"
#include "muster/launch/jobs/job_kill.h"

namespace muster {
namespace {

constexpr absl::Duration kLookEvery = absl::Seconds(1);
constexpr int kPauseMs = 200;
constexpr char kKilling[] = "killing them at once\n";

struct ShownKill {
  JobKill kill;
  std::optional<ShownStates> states = std::nullopt;

  absl::Status Begin(const OpenedHome& opened, const ExperimentId& id, const KillOptions& options) {
    if (options.show) {
      ASSIGN_OR_RETURN(const RunRecord run, opened.registry->Run(id));
      ASSIGN_OR_RETURN(states, ShownStates::Begin(opened, run));
    }
    return kill.Begin(options.now);
  }
  // Returns whether the run has ended, whose last states have been shown then.
  absl::StatusOr<bool> Advance() {
    ASSIGN_OR_RETURN(const bool ended, kill.HasEndedNow());
    if (states.has_value()) RETURN_IF_ERROR(states->Show());
    return ended;
  }
};

JobKill KillOf(OpenedHome& opened, const ExperimentId& id, const RunInJob& run, absl::Duration stop_grace) {
  const auto say = [id](const std::string& line) {
    std::fprintf(stderr, "experiment %s: %s\n", ShownId(id).c_str(), line.c_str());
  };
  return JobKill({opened.home, *opened.registry, *opened.jobs, RealClock(), say},
                 {.id = id, .run = run, .stop_grace = stop_grace});
}

// Returns the runs that are meant: of a grid all that haven't ended.
absl::StatusOr<std::set<ExperimentId>> RunsMeant(const OpenedHome& opened, const std::vector<ExperimentId>& ids) {
  std::set<ExperimentId> meant;
  for (const ExperimentId& id : ids) {
    ASSIGN_OR_RETURN(const RunRecord run, opened.registry->Run(id));
    if (run.runs == 0) meant.insert(id);
    for (int i = 1; i <= run.runs; ++i)
      if (opened.jobs->Find({id.number, i}) != nullptr) meant.insert({id.number, i});
  }
  return meant;
}

}  // namespace

absl::Status KillInJobs(OpenedHome& opened, const std::vector<ExperimentId>& ids, const KillOptions& options) {
  const InterruptFd interrupt;
  ASSIGN_OR_RETURN(const std::set<ExperimentId> meant, RunsMeant(opened, ids));
  absl::Status failed;
  std::list<ShownKill> kills;
  // The last first, so that none begins because one before it has ended.
  for (auto id = meant.rbegin(); id != meant.rend(); ++id) {
    const RunInJob* const run = opened.jobs->Find(*id);
    if (run == nullptr) continue;
    ASSIGN_OR_RETURN(const NewExperiment experiment, opened.registry->Specification(id->number));
    const absl::Duration grace = absl::Seconds(experiment.options.stop_grace_seconds);
    // A job that waits has no states to come.
    const KillOptions own = {.now = options.now, .show = options.show && run->news.phase == JobPhase::kRuns};
    kills.push_back({.kill = KillOf(opened, *id, *run, grace)});
    const absl::Status begun = kills.back().Begin(opened, *id, own);
    failed.Update(begun);
    if (!begun.ok()) kills.pop_back();
  }
  const auto asked = [](const ShownKill& each) { return each.kill.asked_supervisor(); };
  if (options.show && std::any_of(kills.begin(), kills.end(), asked))
    std::fputs(options.now ? kKilling : "asked the tasks to end; Ctrl-C kills them at once\n", stderr);
  absl::Time look_at = RealClock().Now();
  pollfd stop = {options.now ? -1 : interrupt.fd(), POLLIN, 0};
  while (!kills.empty()) {
    std::erase_if(kills, [&failed](ShownKill& each) {
      const absl::StatusOr<bool> ended = each.Advance();
      failed.Update(ended.status());
      return !ended.ok() || *ended;
    });
    if (RealClock().Now() >= look_at) {
      look_at = RealClock().Now() + kLookEvery;
      static_cast<void>(opened.jobs->Look());
    }
    if (kills.empty() || poll(&stop, 1, kPauseMs) != 1) continue;
    stop.fd = -1;
    std::fputs(kKilling, stderr);
    for (ShownKill& each : kills) failed.Update(each.kill.KillNow());
  }
  static_cast<void>(opened.jobs->Look());  // the end of a grid
  return failed;
}

}  // namespace muster
