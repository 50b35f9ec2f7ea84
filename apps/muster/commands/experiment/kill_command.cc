// `muster kill ID…`: ends experiments that go on, or runs of grids, and waits until they have ended.
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "apps/muster/commands/command_table.h"
#include "apps/muster/experiment/experiment_command.h"
#include "apps/muster/experiment/experiment_json.h"
#include "apps/muster/experiment/kill_in_jobs.h"
#include "apps/muster/experiment/missing_supervisor.h"
#include "apps/muster/experiment/shown_states.h"
#include "apps/muster/terminal/interrupt_fd.h"
#include "muster/base/status_macros.h"
#include "muster/launch/registry/files/machine_id.h"
#include "muster/launch/registry/files/private_files.h"
#include "muster/launch/registry/files/requests.h"
#include "muster/launch/registry/run_lock.h"
#include "muster/launch/system/pid_fd.h"

namespace muster {
namespace {

constexpr char kKillDescription[] = "End experiments, or runs of grids, and wait until they have ended";

constexpr char kKillFooter[] = R"(
Also ends what an experiment without a supervisor has left behind (muster status names it).
Asks all tasks to end (SIGTERM), parameter servers last, and kills them when their time is over (--stop-grace of muster
train). With --now, or on Ctrl-C while this command waits, kills them at once. A supervisor on another machine that shares
MUSTER_HOME is asked by a file there; Ctrl-C then only ends the waiting. An experiment in a job of Slurm, too: if its
supervisor doesn't answer, Slurm is told to end the job, and a job that waits is cancelled.

Examples:
  muster kill 4
  muster kill 4.3 5          a run of a grid, and an experiment
  muster kill                the last experiment of the project here
  muster kill --all          all running experiments, of all projects

Exit codes: 0 they have ended; 1 one of them had ended before; 2 wrong usage, or no such experiment.)";

constexpr int kExitEndedBefore = 1;
constexpr int kExitKilled = 143;  // 128 + SIGTERM, as an experiment that was asked to end
// The longest time between an experiment's first row in the registry and its supervisor's pid there.
constexpr absl::Duration kStartWait = absl::Seconds(10);
constexpr absl::Duration kPollInterval = absl::Milliseconds(10);
// Each look at a run on another machine makes a file.
constexpr absl::Duration kLookElsewhere = absl::Milliseconds(200);

struct KillFlags {
  std::vector<std::string> ids;
  bool all = false;
  bool now = false;
  bool json = false;
};

// A supervisor that is being ended, held by a descriptor, so that a later process with its number isn't mistaken for
// it.
class Victim {
 public:
  Victim(const ExperimentId& id, int pid_fd, ShownStates states)
      : id_(id), pid_fd_(pid_fd), states_(std::move(states)) {}
  ~Victim() { close(pid_fd_); }
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;

  const ExperimentId& id() const { return id_; }
  int pid_fd() const { return pid_fd_; }
  int wake_fd() const { return states_.wake_fd(); }
  // Does nothing if it has ended meanwhile.
  void Signal(int number) const { (void)SignalPidFd(pid_fd_, number); }

  bool HasEnded() const {
    pollfd end = {pid_fd_, POLLIN, 0};
    return poll(&end, 1, 0) == 1;
  }

  absl::Status ShowStates() { return states_.Show(); }

 private:
  const ExperimentId id_;
  const int pid_fd_;
  ShownStates states_;
};

using Victims = std::vector<std::unique_ptr<Victim>>;

absl::StatusOr<std::vector<ExperimentId>> Wanted(const OpenedHome& opened, const KillFlags& flags) {
  Registry& registry = *opened.registry;
  std::vector<ExperimentId> ids;
  if (flags.all) {
    if (!flags.ids.empty()) return absl::InvalidArgumentError("--all: accepted without ids");
    ASSIGN_OR_RETURN(const std::vector<RunRecord> open, registry.List({.only_open = true}));
    for (const RunRecord& run : open) ids.push_back(run.id);
    for (const auto& [id, left] : opened.left) ids.push_back(id);
    return ids;
  }
  std::vector<std::string> texts = flags.ids;
  if (texts.empty()) texts.emplace_back();
  for (const std::string& text : texts) {
    ASSIGN_OR_RETURN(const ExperimentName name, NameOrLastHere(registry, text));
    if (name.task.has_value())
      return absl::InvalidArgumentError(
          absl::StrCat(text, ": a single task can't be killed, as its experiment would restart it or ",
                       "end; accepted: ", ShownId(name.id)));
    RETURN_IF_ERROR(registry.Run(name.id).status());
    if (std::find(ids.begin(), ids.end(), name.id) == ids.end()) ids.push_back(name.id);
  }
  return ids;
}

// Ends a run of a grid that waits for its turn and has no supervisor: while this holds its lock, nobody else writes its
// state.
absl::Status EndBeforeItBegins(const OpenedHome& opened, RunRecord run) {
  RETURN_IF_ERROR(PosixFileSystem().CreateDirectory(opened.home.folder(run.id)));
  ASSIGN_OR_RETURN(const RunLock lock, RunLock::Take(opened.home.lock(run.id)));
  run.state = RunState::kKilled;
  run.reason = "killed before it started";
  run.exit_code = kExitKilled;
  return opened.registry->SetRun(run);
}

// Returns null if there is no supervisor to end: the run has ended, or hasn't started and now never will.
absl::StatusOr<std::unique_ptr<Victim>> Hold(const OpenedHome& opened, const ExperimentId& id) {
  const absl::Time deadline = RealClock().Now() + kStartWait;
  for (;; absl::SleepFor(kPollInterval)) {
    ASSIGN_OR_RETURN(RunRecord run, opened.registry->Run(id));
    if (HasEnded(run.state)) return nullptr;
    const std::string lock = opened.home.lock(id);
    if (!RunLock::IsHeld(lock) && id.run > 0) {
      const absl::Status ended = EndBeforeItBegins(opened, run);
      if (ended.ok()) return nullptr;
      if (!absl::IsFailedPrecondition(ended)) return ended;  // otherwise its supervisor has just started
    }
    const int pid_fd = run.supervisor > 0 ? OpenPidFd(run.supervisor) : -1;
    ASSIGN_OR_RETURN(const RunRecord still, opened.registry->Run(id));
    // A supervisor holds its lock to its end, so the process with that number was the supervisor all the time.
    if (pid_fd >= 0 && RunLock::IsHeld(lock) && still.supervisor == run.supervisor && !HasEnded(still.state)) {
      absl::StatusOr<ShownStates> states = ShownStates::Begin(opened, run);
      if (states.ok()) return std::make_unique<Victim>(id, pid_fd, *std::move(states));
      close(pid_fd);
      return states.status();
    }
    if (pid_fd >= 0) close(pid_fd);
    if (RealClock().Now() <= deadline) continue;
    ASSIGN_OR_RETURN(const NewExperiment asked, opened.registry->Specification(id.number));
    return absl::DeadlineExceededError(
        MissingSupervisorText(opened.home, id, !asked.options.hosts.job_engine().empty()));
  }
}

void SignalAll(const Victims& victims, int number) {
  for (const auto& victim : victims) victim->Signal(number);
}

// Blocks until a supervisor ends, a line comes or Ctrl-C is pressed; returns true for Ctrl-C.
bool WaitForNews(const Victims& victims, int interrupt_fd) {
  std::vector<pollfd> fds = {{interrupt_fd, POLLIN, 0}};
  int patience = -1;  // milliseconds
  for (const auto& victim : victims) {
    if (victim->HasEnded()) continue;
    fds.push_back({victim->pid_fd(), POLLIN, 0});
    fds.push_back({victim->wake_fd(), POLLIN, 0});
    if (victim->wake_fd() < 0) patience = 100;
  }
  if (fds.size() == 1) return false;  // all have ended
  (void)poll(fds.data(), fds.size(), patience);
  return fds[0].revents != 0;
}

// `now`: they have been told to kill their tasks.
absl::Status AwaitEnds(const Victims& victims, bool show, bool now) {
  if (victims.empty()) return absl::OkStatus();
  const InterruptFd interrupt;
  constexpr char kKilling[] = "killing them at once\n";
  if (show) std::fputs(now ? kKilling : "asked the tasks to end; Ctrl-C kills them at once\n", stderr);
  int interrupt_fd = now ? -1 : interrupt.fd();
  for (bool all_ended = false; !all_ended;) {
    all_ended = std::all_of(victims.begin(), victims.end(), [](const auto& victim) { return victim->HasEnded(); });
    for (const auto& victim : victims) {
      if (show) RETURN_IF_ERROR(victim->ShowStates());
    }
    if (all_ended || !WaitForNews(victims, interrupt_fd)) continue;
    interrupt_fd = -1;
    std::fputs(kKilling, stderr);
    SignalAll(victims, SIGINT);
  }
  return absl::OkStatus();
}

// A supervisor on another machine that has been asked to end its run.
struct AskedSupervisor {
  ExperimentId id;
  std::string host;
  std::string request;  // not answered yet; empty: it was
};

// How long a supervisor elsewhere may be silent before it can't be expected to do anything.
constexpr absl::Duration kSilenceElsewhere = absl::Seconds(30);

absl::StatusOr<AskedSupervisor> Ask(const OpenedHome& opened, const RunRecord& run, bool now) {
  const std::string host = MachineId::Parse(run.machine).host;
  if (run.state == RunState::kCreated && run.id.run > 0)
    return absl::FailedPreconditionError(absl::StrCat(
        "run ", ShownId(run.id), " waits for its turn under its grid's supervisor on ", host,
        "; accepted: the grid, muster kill ", ShownId({.number = run.id.number}), ", or the same on ", host));
  ASSIGN_OR_RETURN(std::string request, WriteKillRequest(opened.home.requests(run.id), now));
  return AskedSupervisor{.id = run.id, .host = host, .request = std::move(request)};
}

// Returns whether the run has ended. An error: its supervisor can't be expected to end it.
absl::StatusOr<bool> HasEndedElsewhere(const OpenedHome& opened, AskedSupervisor& asked) {
  const std::string folder = opened.home.requests(asked.id);
  if (!asked.request.empty()) {
    ASSIGN_OR_RETURN(const bool answered, TakeAnswer(folder, asked.request));
    if (answered) asked.request.clear();
  }
  ASSIGN_OR_RETURN(const RunRecord run, opened.registry->Run(asked.id));
  if (HasEnded(run.state)) return true;
  const std::optional<absl::Duration> silent = opened.registry->SinceRenewal(asked.id);
  if (!silent.has_value() || *silent < kSilenceElsewhere) return false;
  if (!asked.request.empty()) TakeRequestBack(folder, asked.request);
  return absl::UnavailableError(absl::StrCat("experiment ", ShownId(asked.id), ": nothing was heard from its ",
                                             "supervisor on ", asked.host, " for ", ShownAge(*silent),
                                             "; muster kill there ends it, or finds that it is gone"));
}

absl::Status AwaitEndsElsewhere(const OpenedHome& opened, std::vector<AskedSupervisor> asked) {
  absl::Status failed;
  for (const AskedSupervisor& one : asked)
    std::fprintf(stderr, "asked the supervisor of experiment %s on %s to end it\n", ShownId(one.id).c_str(),
                 one.host.c_str());
  while (!asked.empty()) {
    std::erase_if(asked, [&](AskedSupervisor& one) {
      const absl::StatusOr<bool> ended = HasEndedElsewhere(opened, one);
      failed.Update(ended.status());
      return !ended.ok() || *ended;
    });
    if (!asked.empty()) absl::SleepFor(kLookElsewhere);
  }
  return failed;
}

// Reports what has become of them. Returns whether this command has ended all of them.
absl::StatusOr<bool> Tell(Registry& registry, const std::vector<ExperimentId>& ids,
                          const std::map<ExperimentId, RunState>& before, const std::set<ExperimentId>& left,
                          bool json) {
  nlohmann::json list = nlohmann::json::array();
  bool all = true;
  for (const ExperimentId& id : ids) {
    ASSIGN_OR_RETURN(const RunRecord run, registry.Run(id));
    if (HasEnded(before.at(id)) && !left.contains(id)) {
      all = false;
      std::fprintf(stderr, "muster kill: experiment %s had ended before: %s %s ago\n", ShownId(id).c_str(),
                   std::string(Name(run.state)).c_str(), ShownAge(RealClock().Now() - run.ended).c_str());
    } else if (!json) {
      std::printf("experiment %s: %s\n", ShownId(id).c_str(), std::string(Name(run.state)).c_str());
    }
    list.push_back(JsonOf(run));
  }
  if (json) std::printf("%s\n", OneLineJson(list).c_str());
  return all;
}

absl::StatusOr<int> Kill(const KillFlags& flags) {
  const PrivateFiles private_files;
  ASSIGN_OR_RETURN(OpenedHome opened, OpenHome());
  ASSIGN_OR_RETURN(const std::vector<ExperimentId> ids, Wanted(opened, flags));
  if (ids.empty() && !flags.json) std::fputs("no experiment is running\n", stdout);
  std::map<ExperimentId, RunState> before;
  std::set<ExperimentId> left;  // of which only processes without a supervisor were left
  Victims victims;
  std::vector<AskedSupervisor> elsewhere;
  std::vector<ExperimentId> in_jobs;
  absl::Status failed;  // reported after the others have been ended
  for (const ExperimentId& id : ids) {
    ASSIGN_OR_RETURN(const RunRecord run, opened.registry->Run(id));
    before[id] = run.state;
    if (EndLeftProcesses(opened, id)) left.insert(id);
    if (!HasEnded(run.state) && opened.jobs->Find(id) != nullptr) {
      in_jobs.push_back(id);
      continue;
    }
    if (!HasEnded(run.state) && !opened.registry->IsHere(run)) {
      absl::StatusOr<AskedSupervisor> asked = Ask(opened, run, flags.now);
      failed.Update(asked.status());
      if (asked.ok()) elsewhere.push_back(*std::move(asked));
      continue;
    }
    absl::StatusOr<std::unique_ptr<Victim>> victim = Hold(opened, id);
    failed.Update(victim.status());
    if (!victim.ok() || *victim == nullptr) continue;
    (*victim)->Signal(SIGTERM);
    // Another signal, because a repeated one may be taken for an echo of the first.
    if (flags.now) (*victim)->Signal(SIGINT);
    victims.push_back(*std::move(victim));
  }
  RETURN_IF_ERROR(AwaitEnds(victims, !flags.json, flags.now));
  failed.Update(AwaitEndsElsewhere(opened, std::move(elsewhere)));
  if (!in_jobs.empty()) failed.Update(KillInJobs(opened, in_jobs, {.now = flags.now, .show = !flags.json}));
  // A supervisor that was killed meanwhile hasn't written its end.
  RETURN_IF_ERROR(opened.registry->Reconcile().status());
  RETURN_IF_ERROR(failed);
  ASSIGN_OR_RETURN(const bool all, Tell(*opened.registry, ids, before, left, flags.json));
  return all ? 0 : kExitEndedBefore;
}

int KillAndReport(const KillFlags& flags) {
  const absl::StatusOr<int> code = Kill(flags);
  return code.ok() ? *code : ReportError("kill", code.status());
}

}  // namespace

void AddKillCommand(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<KillFlags>();
  CLI::App* command = app.add_subcommand("kill", kKillDescription);
  command->add_option("ID", flags->ids, "Experiments, or runs of grids")->type_name("")->check(RefuseEmptyId);
  command->add_flag("--all", flags->all, "All running experiments, of all projects");
  command->add_flag("--now", flags->now, "Kill the tasks at once, without asking them to end");
  command->add_flag("--json", flags->json, "Print the ended experiments as JSON");
  command->footer(kKillFooter);
  command->callback([flags, &exit_code] { exit_code = KillAndReport(*flags); });
}

}  // namespace muster
