// What ExperimentRun does before its tasks run: builds, makes folders, lets hosts set up what they need.
#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "muster/base/files/file_system.h"
#include "muster/base/retry_pause.h"
#include "muster/base/status_macros.h"
#include "muster/launch/experiment/experiment_run.h"
#include "muster/launch/experiment/setup_plan.h"
#include "muster/launch/project/project_tree.h"
#include "muster/launch/task/task_environment.h"
#include "muster/launch/task_run/left_out.h"

namespace muster {
namespace {

// Between checks whether another experiment has finished the build.
constexpr absl::Duration kBuildPause = absl::Milliseconds(500);
// Pauses between tries while the disk is full: the first, which doubles, and the longest.
constexpr absl::Duration kDiskPause = absl::Seconds(1);
constexpr absl::Duration kLongestDiskPause = absl::Minutes(1);

}  // namespace

absl::Status ExperimentRun::Build() {
  const bool was_needed = build_.needed;
  for (bool said = false; build_.needed; said = true) {
    // Holds the right to build until this returns.
    const auto right = PrepareBuild(build_, order_.home, order_.run.tree);
    if (right.ok()) return RunBuild();
    const bool no_room = absl::IsResourceExhausted(right.status());
    if (!absl::IsUnavailable(right.status()) && !no_room) return right.status();
    if (!said)
      logs_.Say(no_room ? absl::StrCat("waiting for room on the disk: ", std::string(right.status().message()))
                        : "another experiment is building the same: waiting for it");
    RETURN_IF_ERROR(Pause(kBuildPause));
    ASSIGN_OR_RETURN(build_, PlanBuild(order_.file, order_.run.tree, order_.options, order_.home));
  }
  if (was_needed) progress_.SetTask(kBuildTask, RunState::kFinished);  // another experiment built it
  return absl::OkStatus();
}

absl::Status ExperimentRun::RunBuild() {
  progress_.SetRun(RunState::kBuilding);
  progress_.SetTask(kBuildTask, RunState::kBuilding);
  ProcessSpec process;
  process.task = kBuildTask;
  // The last line of what has failed is part of the reason (WhatTheBuildSays).
  process.arguments = {"/bin/sh", "-c", ShellScript(build_.commands, FailedCommand::kNotNamed)};
  process.directory = build_.directory;
  for (const auto& variable : order_.file.env) process.environment.push_back(variable);
  process.environment.emplace_back(kRunIdVariable, run_id_);
  const absl::Status launched = tasks_.Launch({process});
  if (absl::IsCancelled(launched)) return launched;
  if (!launched.ok()) return absl::InternalError(absl::StrCat("the build failed: ", std::string(launched.message())));
  progress_.Commit();
  const absl::Status built = Supervise(kBuildTask, absl::InfiniteDuration());
  tasks_.ForgetTasks();
  if (absl::IsCancelled(built)) return built;
  if (!built.ok()) {
    // Its own lines, which say more, have just been shown.
    const std::string what = absl::StrCat("the build failed: ", std::string(built.message()));
    logs_.Say(what);
    said_why_ = true;
    return absl::InternalError(absl::StrCat(what, WhatTheBuildSays()));
  }
  RETURN_IF_ERROR(MarkBuilt(build_));
  progress_.SetRun(RunState::kPending);
  progress_.Commit();
  return absl::OkStatus();
}

std::vector<TaskId> ExperimentRun::SetupTasks() const {
  if (order_.file.setup.run.empty()) return {};
  const std::vector<std::string> hosts = IsOnHosts() ? HostsWithTasks(order_.hosts) : std::vector<std::string>{""};
  const std::set<std::string> left_out = LeftOutHosts(order_.hosts);
  std::vector<TaskId> tasks;
  for (size_t i = 0; i < hosts.size(); ++i)
    if (!left_out.contains(hosts[i])) tasks.push_back({kSetupJob, static_cast<int>(i)});
  return tasks;
}

MoveWish ElsewhereIn(const RunOrder& order) {
  MoveWish wish = ElsewhereIn(order.hosts, ChiefOfFile(order.file));
  for (const TaskId& task : wish.others)
    if (const int gpus = RoleOfTask(order.file, task).resources.gpus.value_or(0); gpus > 0 && !order.options.no_gpus)
      wish.gpus[task] = gpus;
  return wish;
}

void ExperimentRun::OnPlaced(const TaskId& task, const std::string& host) {
  const std::vector<TaskId> before = SetupTasks();
  order_.hosts.placement[task] = host;
  if (hosts_.has_value()) hosts_->Move(task, host);
  const std::vector<TaskId> now = SetupTasks();
  for (const TaskId& setup : before) {
    if (std::find(now.begin(), now.end(), setup) != now.end() || HasEnded(progress_.task(setup).state)) continue;
    progress_.task(setup).reason = "its host isn't used";
    progress_.SetTask(setup, RunState::kKilled);
  }
  progress_.Commit();
}

// Says a line for each host that can't be used.
absl::Status ExperimentRun::WhyHostsFail(const absl::Status& why) {
  if (!absl::IsUnavailable(why)) return why;
  // A line for each host.
  for (const absl::string_view line : absl::StrSplit(why.message(), '\n')) logs_.Say(std::string(line));
  said_why_ = true;
  progress_.run().exit_code = 2;
  return absl::UnavailableError(absl::StrReplaceAll(why.message(), {{"\n", "; "}}));
}

// On all hosts at once; the first that fails ends it. The loss of one that is optional does not.
absl::Status ExperimentRun::SetUp() {
  const std::string work = order_.home.work(order_.run.id);
  ASSIGN_OR_RETURN(setup_key_, SetupKey(order_.file, work, order_.run.tree));
  if (setup_key_.empty()) return absl::OkStatus();
  const std::string muster = IsOnHosts() ? "muster" : order_.setting.muster_command;
  progress_.SetRun(RunState::kBuilding);
  std::vector<ProcessSpec> processes;
  for (const TaskId& task : SetupTasks()) {
    ProcessSpec& process = processes.emplace_back();
    process.task = task;
    process.arguments = SetupCommand(order_.file, setup_key_, muster);
    process.directory = hosts_.has_value() ? hosts_->WorkOn(HostsWithTasks(order_.hosts)[task.index]) : work;
    process.environment = {order_.file.env.begin(), order_.file.env.end()};
    process.environment.emplace_back(kRunIdVariable, run_id_);
    progress_.SetTask(task, RunState::kBuilding);
  }
  RETURN_IF_ERROR(tasks_.Launch(std::move(processes)));
  progress_.Commit();
  const absl::Status done = Supervise(SetupTasks().front(), absl::InfiniteDuration());
  tasks_.ForgetTasks();
  if (!done.ok()) {
    said_why_ = true;
    return done;
  }
  for (const TaskId& task : SetupTasks())
    if (progress_.task(task).state == RunState::kFailed)
      RETURN_IF_ERROR(tasks_.LeaveOut(HostsWithTasks(order_.hosts)[task.index], "it was lost during its setup"));
  progress_.SetRun(RunState::kPending);
  progress_.Commit();
  return absl::OkStatus();
}

// The build's last words are muster's own, with the remedy (build.cc), or those of a command of `install`.
std::string ExperimentRun::WhatTheBuildSays() const {
  constexpr char kMusterSays[] = "muster: ";
  const std::deque<std::string> lines = logs_.LastLines(kBuildTask);
  if (lines.empty()) return "";
  auto first = lines.end();
  while (first != lines.begin() && absl::StartsWith(*(first - 1), kMusterSays)) --first;
  if (first == lines.end()) return absl::StrCat("; its last line: ", lines.back());
  std::string says;
  for (; first != lines.end(); ++first) {
    const char* between = says.empty() ? ": " : absl::EndsWith(says, ", or") ? " " : "; ";
    absl::StrAppend(&says, between, absl::StripAsciiWhitespace(first->substr(sizeof kMusterSays - 1)));
  }
  return says;
}

absl::Status ExperimentRun::TryUntilThereIsRoom(absl::FunctionRef<absl::Status()> work) {
  RetryPause pause(kDiskPause, kLongestDiskPause);
  for (bool first = true;; first = false) {
    const absl::Status done = work();
    if (!absl::IsResourceExhausted(done)) return done;
    if (first)
      logs_.Say(absl::StrCat("waiting for room on the disk, trying again and again: ", std::string(done.message())));
    RETURN_IF_ERROR(Pause(pause.Next()));
  }
}

absl::Status ExperimentRun::MakeFolders() {
  return TryUntilThereIsRoom([this] { return TryToMakeFolders(); });
}

absl::Status ExperimentRun::TryToMakeFolders() {
  FileSystem& files = PosixFileSystem();
  const std::string work = order_.home.work(order_.run.id);
  RETURN_IF_ERROR(files.RemoveTree(work));  // left by an earlier attempt
  RETURN_IF_ERROR(CopyTree(build_.code, work, [this] { HearHosts(); }));
  // Unlike muster's own files, results get the rights that the user's shell gives to files, so that they can be shared.
  const mode_t own = umask(order_.setting.users_umask);
  const absl::Status made = files.CreateDirectory(order_.run.output_dir);
  umask(own);
  return made;
}

void ExperimentRun::MakeHosts() {
  hosts_.emplace(
      HostedRun{.plan = order_.hosts,
                .run_id = run_id_,
                .name = HostedName(order_.home, order_.run),
                .work = order_.home.work(order_.run.id),
                .output_dir = order_.run.output_dir,
                .mark_file = order_.home.output_mark(order_.run.id),
                .elsewhere_file = order_.home.output_elsewhere(order_.run.id),
                .chief = ChiefOfFile(order_.file),
                .users_umask = order_.setting.users_umask},
      tasks_,
      HostedCalls{.say = [this](const std::string& line) { logs_.Say(line); }, .between = [this] { HearHosts(); }});
}

}  // namespace muster
