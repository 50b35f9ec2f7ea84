// What ExperimentRun does so that another supervisor of its job can go on with its tasks, and when it is that other
// one.
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/launch/experiment/experiment_run.h"
#include "muster/launch/experiment/setup_plan.h"

namespace muster {

void ExperimentRun::LeaveHandover() {
  logs_.Flush();
  std::vector<LoggedOutputFile::TaskOutput> outputs;
  for (const PlannedTask& planned : plan_.tasks) {
    const TaskId& task = planned.process.task;
    if (const auto logged = logs_.Logged(task); logged.has_value()) outputs.push_back({task, lives_[task], *logged});
  }
  absl::StatusOr<LoggedOutputFile> file = LoggedOutputFile::Make(order_.home, order_.run.id, outputs);
  if (!file.ok()) return LeaveNoHandover(file.status());
  logged_.emplace(*std::move(file));
  handover_.emplace(Handover{.job = order_.setting.job->name,
                             .supervisor = order_.hosts.supervisor,
                             .run_id = run_id_,
                             .job_token = random_token_,
                             .addresses = {},
                             .placement = {},
                             .hosts = hosts_->placed(),
                             .lives = {}});
  if (order_.setting.job->left.has_value()) handover_->addresses = order_.setting.job->left->addresses;
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
  if (!written.ok()) LeaveNoHandover(written);
}

// What an earlier one says would be wrong.
void ExperimentRun::LeaveNoHandover(const absl::Status& why) {
  RemoveHandover(order_.home, order_.run.id);
  leaves_handover_ = false;
  handover_.reset();
  logged_.reset();
  logs_.Say(absl::StrCat("if this supervisor is killed, the run begins anew: ", std::string(why.message())));
}

void ExperimentRun::OnOutputLost(const TaskId& task, OutputStream stream, uint64_t bytes) {
  if (!IsTransfer(task)) logs_.Skip(task, stream, bytes);
}

void ExperimentRun::OnLaunch(const TaskId& task, int life) {
  if (PlannedOf(task) == plan_.tasks.end()) return;
  lives_[task] = life;
  if (!handover_.has_value()) return;
  logs_.Flush();  // the last lines of its life before
  WriteHandoverNow();
  if (!logged_.has_value()) return;
  if (const auto logged = logs_.Logged(task); logged.has_value()) logged_->Note(task, life, *logged);
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

  LeftTasks tasks{
      .processes = Processes(), .running = {}, .starting = {}, .lives = lives_, .addresses = left.addresses};
  const std::map<TaskId, LoggedOutput> logged = ReadLoggedOutput(order_.home, order_.run.id, lives_);
  for (const PlannedTask& planned : plan_.tasks) {
    const TaskId& task = planned.process.task;
    const TaskRecord& record = progress_.task(task);
    if (HasEnded(record.state)) continue;
    if (record.state == RunState::kStarting && record.restarts > 0) tasks.starting.insert(task);
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
  leaves_handover_ = true;
  LeaveHandover();
  progress_.Commit();
  LaunchTensorBoard();
  return Supervise(plan_.chief, kIdleGrace, std::move(tasks));
}

}  // namespace muster
