// What ExperimentRun does so that another supervisor of its job can go on with its tasks, and when it is that other
// one.
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/launch/experiment/experiment_run.h"
#include "muster/launch/experiment/setup_plan.h"

namespace muster {

void ExperimentRun::LeaveHandover() {
  if (!order_.setting.job.has_value()) return;
  absl::StatusOr<LoggedOutputFile> logged = LoggedOutputFile::Open(order_.home, order_.run.id);
  if (!logged.ok()) return logs_.Say(absl::StrCat("no other supervisor can take over: ", logged.status().message()));
  handover_.emplace(Handover{.job = order_.setting.job->name,
                             .supervisor = order_.hosts.supervisor,
                             .run_id = run_id_,
                             .job_token = random_token_,
                             .addresses = {},
                             .placement = {},
                             .hosts = hosts_->placed(),
                             .lives = {}});
  if (order_.setting.job->left.has_value()) handover_->addresses = order_.setting.job->left->addresses;
  logged_.emplace(*std::move(logged));
  logs_.Flush();
  for (const PlannedTask& planned : plan_.tasks) {
    const TaskId& task = planned.process.task;
    logged_->Note(task, lives_[task], logs_.Logged(task));
  }
  WriteHandoverNow();
}

void ExperimentRun::WriteHandoverNow() {
  handover_->lives = lives_;
  handover_->placement = hosts_->placement();
  for (const auto& [task, now] : ports_) {
    auto& known = handover_->addresses[task];
    if (known.empty() || known.back() != now) known.push_back(now);
  }
  const absl::Status written = WriteHandover(order_.home, order_.run.id, *handover_);
  if (written.ok()) return;
  RemoveHandover(order_.home, order_.run.id);  // an old one would be wrong
  logs_.Say(absl::StrCat("no other supervisor can take over: ", std::string(written.message())));
}

void ExperimentRun::OnLaunch(const TaskId& task, int life) {
  if (PlannedOf(task) == plan_.tasks.end()) return;
  lives_[task] = life;
  if (!handover_.has_value()) return;
  logs_.Flush();  // the last lines of its life before
  logged_->Note(task, life, logs_.Logged(task));
  WriteHandoverNow();
}

absl::Status ExperimentRun::TakeOver(const Handover& left) {
  ASSIGN_OR_RETURN(const std::vector<TaskRecord> records, registry_.Tasks(order_.run.id));
  for (const TaskRecord& record : records) progress_.Keep(record);
  ASSIGN_OR_RETURN(build_, PlanBuild(order_.file, order_.run.tree, order_.options, order_.home));
  ASSIGN_OR_RETURN(setup_key_, SetupKey(order_.file, order_.home.work(order_.run.id), order_.run.tree));
  for (const auto& [task, addresses] : left.addresses) ports_[task] = addresses.back();
  MakeHosts();
  hosts_->Know(left.hosts);
  RETURN_IF_ERROR(Plan());
  RETURN_IF_ERROR(TakeGpus());
  lives_ = left.lives;

  LeftTasks tasks{.processes = Processes(), .running = {}, .ended = {}, .lives = lives_, .addresses = left.addresses};
  const std::map<TaskId, LoggedOutput> logged = ReadLoggedOutput(order_.home, order_.run.id, lives_);
  for (const PlannedTask& planned : plan_.tasks) {
    const TaskId& task = planned.process.task;
    const TaskRecord& record = progress_.task(task);
    if (HasEnded(record.state)) {
      tasks.ended[task] = record.exit.value_or(ExitStatus());
      continue;
    }
    LeftProcess& process = tasks.running.emplace_back(LeftProcess{.task = task});
    for (const std::string& address : ports_.at(task)) process.ports.push_back(PortOf(address));
    const auto known = logged.find(task);
    if (known == logged.end()) continue;
    const LoggedOutput written = logs_.GoOn(task, known->second);
    process.written_stdout = written.out;
    process.written_stderr = written.err;
  }
  logs_.Say(absl::StrCat("its supervisor was killed; another one goes on with its ", tasks.running.size(),
                         tasks.running.size() == 1 ? " task" : " tasks"));
  LeaveHandover();
  progress_.Commit();
  RETURN_IF_ERROR(tasks_.TakeOver(std::move(tasks)));
  progress_.Commit();
  LaunchTensorBoard();
  return absl::OkStatus();
}

}  // namespace muster
