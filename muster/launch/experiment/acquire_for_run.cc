#include "muster/launch/experiment/acquire_for_run.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/clock.h"
#include "muster/base/status_macros.h"
#include "muster/launch/experiment/experiment_hosts.h"
#include "muster/launch/experiment/experiment_plan.h"
#include "muster/launch/experiment/supervisor_pulse.h"
#include "muster/launch/experiment/task_logs.h"
#include "muster/launch/registry/files/requests.h"
#include "muster/launch/registry/kept_variables.h"
#include "muster/launch/supervise/ending_signals.h"
#include "muster/launch/system/fd_loop.h"

namespace muster {
namespace {

constexpr int kKilledWhileWaiting = 143;  // 128 + SIGTERM
constexpr int kNoHostsCode = 2;

struct NeedsOfHost {
  double cpus = 0;
  int64_t mem_bytes = 0;
  int gpus = 0;
};

// Returns the most that the tasks of one host state together.
absl::StatusOr<NeedsOfHost> MostOfAHost(const ExperimentFile& file, const SubmitOptions& options) {
  ASSIGN_OR_RETURN(const HostPlan plan, PlanHosts(file, options));
  std::map<std::string, NeedsOfHost> needs;
  NeedsOfHost most;
  for (const auto& [task, host] : plan.placement) {
    const Resources& stated = RoleOfTask(file, task).resources;
    NeedsOfHost& its = needs[host];
    its.cpus += stated.cpus.value_or(0);
    its.mem_bytes += stated.mem_bytes.value_or(0);
    its.gpus += options.no_gpus ? 0 : stated.gpus.value_or(0);
    most = {.cpus = std::max(most.cpus, its.cpus),
            .mem_bytes = std::max(most.mem_bytes, its.mem_bytes),
            .gpus = std::max(most.gpus, its.gpus)};
  }
  return most;
}

// The run while it waits.
class WaitingRun {
 public:
  WaitingRun(const AcquireOrder& order, Registry& registry, RunRecord& run)
      : order_(order),
        registry_(registry),
        run_(run),
        logs_({.folder = order.home.logs(run.id), .most_bytes = order.file.log_bytes}, RealClock()),
        pulse_(order.home, run.id, registry, RealClock()),
        loop_(RealClock()) {}

  absl::StatusOr<std::unique_ptr<HeldHosts>> Acquire();

 private:
  absl::StatusOr<HeldOrder> Order() const;
  absl::StatusOr<std::unique_ptr<HeldHosts>> Hold();
  absl::Status End(const absl::Status& why);
  void Waits(const std::string& why);
  absl::Status OnTime();

  const AcquireOrder& order_;
  Registry& registry_;
  RunRecord& run_;
  TaskLogs logs_;
  SupervisorPulse pulse_;
  FdLoop loop_;
  EndingSignals signals_;
  int interrupts_ = 0;
};

absl::StatusOr<HeldOrder> WaitingRun::Order() const {
  ASSIGN_OR_RETURN(const NeedsOfHost most, MostOfAHost(order_.file, order_.options));
  ASSIGN_OR_RETURN(const NewExperiment experiment, registry_.Specification(run_.id.number));
  const CommandSetting& commands = *order_.options.hosts.command;
  return HeldOrder{.folder = order_.home.held(),
                   .who = absl::StrCat("experiment ", run_.id.ToString()),
                   .setting = commands,
                   .values = {{"hosts", absl::StrCat(commands.hosts)},
                              {"cpus", absl::StrCat(static_cast<int64_t>(std::ceil(most.cpus)))},
                              {"mem_bytes", absl::StrCat(most.mem_bytes)},
                              {"gpus", absl::StrCat(most.gpus)},
                              {"experiment", run_.id.ToString()},
                              {"project", order_.file.project}},
                   .environment = WithKeptVariables(order_.setting.environment, experiment.environment)};
}

absl::StatusOr<std::unique_ptr<HeldHosts>> WaitingRun::Hold() {
  ASSIGN_OR_RETURN(const HeldOrder order, Order());
  return HeldHosts::Acquire(order,
                            {.say =
                                 [this](const std::string& line) {
                                   logs_.Say(line);
                                   logs_.Flush();
                                 },
                             .waits = [this](const std::string& why) { Waits(why); },
                             .deadline = [this] { return pulse_.deadline(); },
                             .on_time = [this] { return OnTime(); }},
                            loop_, RealClock());
}

absl::StatusOr<std::unique_ptr<HeldHosts>> WaitingRun::Acquire() {
  loop_.Watch(signals_.fd(), POLLIN, [this](short) { interrupts_ += signals_.Take(); });
  logs_.AddState(RunState::kCreated);
  DropRequests(order_.home.requests(run_.id));
  logs_.AddState(RunState::kPending);
  run_.state = RunState::kPending;
  run_.supervisor = getpid();
  run_.reason = "it waits for its hosts";
  RETURN_IF_ERROR(registry_.SetRun(run_));
  logs_.Flush();
  absl::StatusOr<std::unique_ptr<HeldHosts>> held = Hold();
  loop_.Forget(signals_.fd());
  run_.reason.clear();
  if (held.ok()) return held;
  RETURN_IF_ERROR(End(held.status()));
  return nullptr;
}

// What can't be written now is shown with the next change.
void WaitingRun::Waits(const std::string& why) {
  if (why.empty()) return;
  std::string reason = absl::StrCat("it waits for its hosts: ", why);
  if (reason == run_.reason) return;
  run_.reason = std::move(reason);
  static_cast<void>(registry_.SetRun(run_));
  logs_.Say(absl::StrCat("waiting for hosts: ", why));
  logs_.Flush();
}

absl::Status WaitingRun::OnTime() {
  pulse_.OnTime();
  return interrupts_ == 0 ? absl::OkStatus() : absl::CancelledError("it was killed");
}

absl::Status WaitingRun::End(const absl::Status& why) {
  const bool killed = absl::IsCancelled(why);
  run_.state = killed ? RunState::kKilled : RunState::kFailed;
  run_.reason = killed ? std::string(why.message()) : absl::StrCat("it got no hosts: ", std::string(why.message()));
  run_.exit_code = killed ? kKilledWhileWaiting : kNoHostsCode;
  run_.supervisor = 0;
  logs_.Say(run_.reason);
  logs_.AddState(run_.state);
  logs_.Flush();
  return registry_.SetRun(run_);
}

}  // namespace

absl::StatusOr<std::unique_ptr<HeldHosts>> AcquireForRun(const AcquireOrder& order, Registry& registry,
                                                         RunRecord& run) {
  BlockEndingSignals();
  return WaitingRun(order, registry, run).Acquire();
}

}  // namespace muster
