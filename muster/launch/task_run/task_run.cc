#include "muster/launch/task_run/task_run.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/absl_view.h"
#include "muster/base/check.h"
#include "muster/base/clock.h"
#include "muster/base/status_macros.h"
#include "muster/launch/backends/choice/make_backend.h"
#include "muster/launch/task/dispensable.h"
#include "muster/launch/task/task_environment.h"
#include "muster/launch/task_run/unheard_hosts.h"

namespace muster {
namespace {

// From asking tasks to end, because all are started again, to killing them.
constexpr absl::Duration kWholeRestartGrace = absl::Seconds(10);

// Returns whether the run goes on without a task: one of an optional host, or any such task wherever it is now.
bool IsDispensableIn(const HostPlan& plan, const TaskId& task) {
  const auto placed = plan.placement.find(task);
  return IsDispensable(task) || (placed != plan.placement.end() && plan.optional_hosts.contains(placed->second));
}

// By then a supervisor in a job knows that it is the job's end that has ended a task.
constexpr absl::Duration kNoticePause = absl::Seconds(2);

// What strerror says of EADDRINUSE, in the writing of any language's library, and what muster's own servers say.
constexpr std::string_view kInUse[] = {"address already in use", ") is in use by another process", "; is it in use?"};

bool SayThatTheAddressIsInUse(const std::deque<std::string>& lines) {
  return std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    const std::string said = absl::AsciiStrToLower(line);
    return std::any_of(std::begin(kInUse), std::end(kInUse),
                       [&](std::string_view sign) { return absl::StrContains(said, AbslView(sign)); });
  });
}

std::string NamesOf(const std::set<TaskId>& tasks, const TaskRunClient& client) {
  return absl::StrJoin(tasks, ", ",
                       [&client](std::string* out, const TaskId& task) { out->append(client.NameOf(task)); });
}

}  // namespace

uint16_t PortOf(const std::string& address) {
  uint32_t port = 0;
  MUSTER_CHECK(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
  return static_cast<uint16_t>(port);
}

TaskRun::TaskRun(TaskRunOptions options, TaskRunClient& client)
    : options_(std::move(options)), client_(client), signals_(options_.backend.plan.in_job), loop_(RealClock()) {
  loop_.Watch(signals_.fd(), POLLIN, [this](short) { OnSignals(); });
}

TaskRun::~TaskRun() { loop_.Forget(signals_.fd()); }

absl::Status TaskRun::Start() {
  if (options_.make_backend) {
    backend_ = options_.make_backend(*this);
  } else {
    ASSIGN_OR_RETURN(backend_, MakeBackend(options_.engine, options_.backend, loop_, *this));
  }
  return backend_->Start();
}

absl::StatusOr<ReservedPorts> TaskRun::Reserve(const std::vector<PortRequest>& requests) {
  for (const PortRequest& request : requests) {
    waiting_.insert(request.task);
    requests_[request.task] = request.ports;
    if (!request.elsewhere.hosts.empty()) backend_->AllowElsewhere(request.task, request.elsewhere);
    backend_->Reserve(request.task, request.ports);
  }
  RETURN_IF_ERROR(AwaitAnswers(/*interrupts=*/1));
  if (not_reserved_.has_value()) return *not_reserved_;
  return moves_.addresses();
}

absl::Status TaskRun::LeaveOut(const std::string& host, const std::string& why) {
  for (const TaskId& task : backend_->LeaveOut(host, why)) {
    waiting_.insert(task);
    backend_->Reserve(task, requests_.at(task));
  }
  RETURN_IF_ERROR(AwaitAnswers(/*interrupts=*/1));
  return not_reserved_.value_or(absl::OkStatus());
}

absl::Status TaskRun::Launch(std::vector<ProcessSpec> processes) {
  ForgetTasks();  // the supervisor of earlier ones isn't told of an end that comes with the start
  processes_ = std::move(processes);
  not_started_.clear();
  for (const ProcessSpec& process : processes_) {
    waiting_.insert(process.task);
    LaunchLife(process);
  }
  RETURN_IF_ERROR(AwaitAnswers(/*interrupts=*/2));
  for (const ProcessSpec& process : processes_) {
    const auto failed = not_started_.find(process.task);
    if (failed == not_started_.end()) continue;
    if (not_started_.size() < processes_.size() && absl::IsUnavailable(failed->second) &&
        IsDispensableIn(options_.backend.plan, process.task)) {
      client_.Say(absl::StrCat(client_.NameOf(process.task), " can't be started: ", failed->second.message()));
      early_exits_.emplace_back(process.task, ExitStatus{.signal = SIGKILL, .by_its_host = true});
      continue;
    }
    start_failure_ = {process.task, failed->second, not_started_.size() == processes_.size()};
    return failed->second;
  }
  return absl::OkStatus();
}

void TaskRun::TakeOver(LeftTasks left, TaskSupervisorOptions options) {
  processes_ = std::move(left.processes);
  lives_ = std::move(left.lives);
  for (const auto& [task, all] : left.addresses) {
    requests_[task].assign(all.back().size(), 0);
    for (const std::vector<std::string>& addresses : all) moves_.Know(task, addresses);
  }
  restart_owed_ = std::move(left.starting);
  bool have_moved = false;
  for (const auto& [task, all] : left.addresses) have_moved = have_moved || all.size() > 1;
  for (const LeftProcess& process : left.running) {
    taken_over_.insert(process.task);
    backend_->TakeOver(process);
  }
  if (have_moved) backend_->WriteHosts(moves_.ClusterFile());
  Supervise(std::move(options));
}

// A process that was to be taken over isn't there.
void TaskRun::OnNothingLeft(const TaskId& task, const absl::Status& why) {
  client_.Say(absl::StrCat(client_.NameOf(task), " isn't there any more: ", why.message()));
  if (restart_owed_.erase(task) > 0 && !supervisor_->ending()) return supervisor_->Replace(task, {.signal = SIGKILL});
  if (!absl::IsNotFound(why) && !absl::IsUnavailable(why)) return supervisor_->OnNotStarted(task, why);
  supervisor_->OnExit(task, {.signal = SIGKILL, .by_its_host = true});
}

absl::Status TaskRun::AwaitAnswers(int interrupts) {
  while (!waiting_.empty()) {
    if (interrupts_ - settled_ >= interrupts) return absl::CancelledError("interrupted");
    client_.Wait();
  }
  return absl::OkStatus();
}

void TaskRun::LaunchCompanion(ProcessSpec process) {
  companion_.emplace(std::move(process), *backend_, [this](const std::string& line) { client_.Say(line); });
  companion_->Launch();
}

void TaskRun::Supervise(TaskSupervisorOptions options) {
  options.relaunch = [this](const TaskId& task) { Relaunch(task); };
  options.name = [this](const TaskId& task) { return client_.NameOf(task); };
  options.why_interrupted = [this] { return client_.WhyInterrupted(); };
  if (options_.backend.plan.in_job) options.pause_after_sigterm = kNoticePause;
  options.dispensable = [this](const TaskId& task) { return IsDispensableIn(options_.backend.plan, task); };
  std::vector<TaskId> tasks;
  for (const ProcessSpec& process : processes_) tasks.push_back(process.task);
  supervisor_.emplace(tasks, options, *backend_, clock(), [this](const std::string& line) { client_.Say(line); });
  for (int i = settled_; i < interrupts_; ++i) supervisor_->OnInterrupt();
  for (const auto& [task, status] : std::exchange(early_exits_, {}))
    if (!StartsOnceMore(task, status)) supervisor_->OnExit(task, status);
  while (!supervisor_->done()) client_.Wait();
}

void TaskRun::ForgetTasks() {
  supervisor_.reset();
  processes_.clear();
  lives_.clear();
}

int TaskRun::Stop() {
  if (backend_ == nullptr) return 0;
  if (companion_.has_value()) companion_->End(loop_);
  return backend_->Stop();
}

LocalProcess TaskRun::ProcessOf(const TaskId& task) const {
  const auto found = running_.find(task);
  return found == running_.end() ? LocalProcess() : found->second;
}

void TaskRun::RunRound(absl::Time deadline) {
  if (backend_ != nullptr) deadline = std::min(deadline, backend_->deadline());
  if (supervisor_.has_value()) deadline = std::min({deadline, supervisor_->deadline(), end_by_});
  loop_.RunOnce(deadline);
  if (backend_ != nullptr) backend_->OnTime();
  if (!supervisor_.has_value()) return;
  supervisor_->OnTime();
  GoOnWithWholeRestart();
}

void TaskRun::OnSignals() {
  for (int more = signals_.Take(); more > 0; --more) {
    ++interrupts_;
    if (supervisor_.has_value()) supervisor_->OnInterrupt();
    const std::string why = client_.WhyInterrupted();
    if (interrupts_ == 1 && !supervisor_.has_value() && !processes_.empty() && !waiting_.empty())
      client_.Say(absl::StrCat(why.empty() ? "interrupted" : why, ": ", NamesOf(waiting_, client_),
                               " must have been started, or have failed to, before all are ended; another interrupt "
                               "doesn't wait for that"));
    std::vector<TaskId> running;
    for (const auto& [task, process] : running_) running.push_back(task);
    for (const std::string& line : UnheardHostLines(
             running, [this](const TaskId& task) { return backend_->UnheardHost(task); },
             [this](const TaskId& task) { return client_.NameOf(task); }))
      client_.Say(line);
  }
}

void TaskRun::OnReserved(const TaskId& task, const std::vector<std::string>& addresses) {
  if (moving_.contains(task)) return OnMoved(task, addresses);
  waiting_.erase(task);
  moves_.Know(task, addresses);
}

void TaskRun::OnNotReserved(const TaskId& task, const absl::Status& why) {
  if (moving_.contains(task)) return OnNotMoved(task, why);
  waiting_.erase(task);
  if (!not_reserved_.has_value()) not_reserved_ = why;
}

void TaskRun::OnPlaced(const TaskId& task, const std::string& host, const std::string& why) {
  client_.OnPlaced(task, host);
  client_.Say(absl::StrCat(why, "; ", client_.NameOf(task), " runs on ", host, " instead"));
}

void TaskRun::OnStarted(const TaskId& task, const LocalProcess& process) {
  if (IsCompanion(task)) return;
  starting_.erase(task);
  running_[task] = process;
  if (process.pid_on_host > 0) restart_owed_.erase(task);
  if (waiting_.erase(task) + started_once_more_.erase(task) + taken_over_.erase(task) > 0) {
    client_.OnStarted(SpecOf(task), process);
  } else {
    supervisor_->OnStarted(task);
  }
}

void TaskRun::OnNotStarted(const TaskId& task, const absl::Status& why) {
  if (IsCompanion(task)) return companion_->OnNotStarted(why);
  started_once_more_.erase(task);
  starting_.erase(task);
  if (ParkIfAsked(task)) return;
  if (taken_over_.erase(task) > 0) return OnNothingLeft(task, why);
  if (waiting_.erase(task) > 0) {
    not_started_[task] = why;
  } else if (supervisor_.has_value() && MayFindPlace(task, why)) {
    supervisor_->OnNoPlace(task, why);
  } else if (supervisor_.has_value()) {
    supervisor_->OnNotStarted(task, why);
  } else {
    client_.Say(absl::StrCat(client_.NameOf(task), " could not be started once more: ", why.message()));
    early_exits_.emplace_back(task, ExitStatus{.code = 1});  // as TaskSupervisor::OnNotStarted
    renewed_.insert(task);                                   // its last lines are those of the life before
  }
}

void TaskRun::OnOutput(const TaskId& task, OutputStream stream, std::string_view bytes) {
  client_.OnOutput(task, stream, bytes);
  if (supervisor_.has_value()) supervisor_->OnOutput(task);
}

void TaskRun::OnOutputLost(const TaskId& task, OutputStream stream, uint64_t bytes) {
  client_.OnOutputLost(task, stream, bytes);
}

void TaskRun::OnExit(const TaskId& task, const ExitStatus& status) {
  client_.OnOutputEnd(task);
  if (IsCompanion(task)) return companion_->OnExit(status, /*early=*/!supervisor_.has_value() || !supervisor_->done());
  running_.erase(task);
  if (ParkIfAsked(task)) return;
  if (StartsOnceMore(task, status)) return;
  if (restart_owed_.erase(task) > 0 && !supervisor_->ending()) return supervisor_->Replace(task, status);
  if (supervisor_.has_value()) {
    supervisor_->OnExit(task, status);
  } else {
    early_exits_.emplace_back(task, status);
  }
}

MoveWish TaskRun::WishOf(const TaskId& task) {
  MoveWish wish = client_.MayMoveTo(task);
  for (const ProcessSpec& process : processes_)
    if (supervisor_->IsOpen(process.task)) wish.others.push_back(process.task);
  return wish;
}

void TaskRun::OnOutOfReach(const TaskId& task) {
  if (!supervisor_.has_value() || !running_.contains(task)) return;
  if (supervisor_->IsUseless(task)) {
    client_.Say(absl::StrCat(client_.NameOf(task), " is out of reach, and isn't waited for"));
    backend_->GiveUp(task);
    return OnExit(task, {.signal = SIGKILL, .by_its_host = true});
  }
  if (!client_.IsReplacedAtOnce(task)) return;
  const MoveWish wish = WishOf(task);
  if (wish.hosts.empty() || !backend_->CanGiveUp(task, wish) || !supervisor_->MayReplace(task)) return;
  client_.Say(
      absl::StrCat(client_.NameOf(task), " is out of reach: it is given up, and killed once its host is heard again"));
  backend_->GiveUp(task);
  client_.OnOutputEnd(task);
  const std::string host = running_.extract(task).mapped().host;
  supervisor_->Replace(task, {.signal = SIGKILL, .by_its_host = true, .lost_host = host});
}

// Its host may come back, or another one take it.
bool TaskRun::MayFindPlace(const TaskId& task, const absl::Status& why) {
  return absl::IsUnavailable(why) || (absl::IsAborted(why) && !client_.MayMoveTo(task).hosts.empty());
}

void TaskRun::Relaunch(const TaskId& task) {
  const MoveWish wish = WishOf(task);
  std::string host = wish.hosts.empty() ? "" : backend_->Move(task, wish);
  if (!host.empty()) {
    client_.Say(absl::StrCat(client_.NameOf(task), " goes to ", host));
  } else if (const auto unplaced = unplaced_.find(task); unplaced != unplaced_.end()) {
    host = unplaced->second;
  } else if (restarts_all_) {
    parked_.insert(task);
    return;
  } else {
    return LaunchAgain(task);
  }
  moving_[task] = host;
  backend_->Reserve(task, requests_.at(task));
}

void TaskRun::LaunchAgain(const TaskId& task) {
  starting_.insert(task);
  LaunchLife(SpecOf(task));
}

// Tells the process which launch of its task it is.
void TaskRun::LaunchLife(ProcessSpec process) {
  const int life = ++lives_[process.task];
  process.environment.emplace_back(kTaskLifeVariable, absl::StrCat(life));
  client_.OnLaunch(process.task, life);
  backend_->Launch(process);
}

// Its next start begins with the ports.
void TaskRun::OnNotMoved(const TaskId& task, const absl::Status& why) {
  const std::string host = unplaced_[task] = moving_.extract(task).mapped();
  // Another try doesn't change what is for good.
  if (!MayFindPlace(task, why)) return supervisor_->OnNotStarted(task, why);
  const std::string what = host.empty() ? "it gets no other port" : absl::StrCat("no place on ", host);
  supervisor_->OnNoPlace(task, absl::UnavailableError(absl::StrCat(what, ": ", why.message())));
}

void TaskRun::OnMoved(const TaskId& task, const std::vector<std::string>& addresses) {
  const std::string host = moving_.at(task);
  if (moves_.AreOfAnother(task, addresses))
    return OnNotMoved(task, absl::UnavailableError(absl::StrCat("another task had the port ", addresses.front())));
  moves_.Know(task, addresses);
  absl::StatusOr<std::vector<ProcessSpec>> planned = client_.PlanAgain(task, host, moves_.addresses());
  if (!planned.ok()) return OnNotMoved(task, planned.status());
  moving_.erase(task);
  unplaced_.erase(task);
  for (ProcessSpec& process : *planned) process.release_ports = SpecOf(process.task).release_ports;
  processes_ = *std::move(planned);
  if (supervisor_->ending()) return supervisor_->OnExit(task, {.signal = SIGTERM});
  backend_->WriteHosts(moves_.ClusterFile());
  // Nobody knows the address of a task that has none.
  if (addresses.empty() || (!host.empty() && client_.LearnsOfMoves())) return LaunchAgain(task);
  parked_.insert(task);
  BeginWholeRestart();
}

// A process has ended, or not started.
bool TaskRun::ParkIfAsked(const TaskId& task) {
  if (asked_to_end_.erase(task) == 0 || supervisor_->ending()) return false;
  parked_.insert(task);
  return true;
}

// Parameter servers are asked once no other task needs them any more, for a last checkpoint say.
void TaskRun::AskToEnd(bool servers) {
  end_by_ = clock().Now() + kWholeRestartGrace;
  for (const TaskId& task : asked_to_end_)
    if ((task.job == kPsJob) == servers) backend_->End(task, EndMode::kGently);
}

void TaskRun::BeginWholeRestart() {
  std::set<TaskId> others = starting_;
  for (const auto& [task, process] : running_) others.insert(task);
  if (!std::exchange(restarts_all_, true) && !others.empty())
    client_.Say("the programs can't learn of a new address: ending all tasks, to start them again");
  asked_to_end_.insert(others.begin(), others.end());
  servers_asked_ = false;
  AskToEnd(/*servers=*/false);
}

void TaskRun::GoOnWithWholeRestart() {
  if (!restarts_all_) return;
  if (supervisor_->ending()) {
    restarts_all_ = false;
    end_by_ = absl::InfiniteFuture();
    asked_to_end_.clear();
    for (const TaskId& task : std::exchange(parked_, {})) supervisor_->OnExit(task, {.signal = SIGTERM});
    return;
  }
  const bool only_servers =
      std::all_of(asked_to_end_.begin(), asked_to_end_.end(), [](const TaskId& task) { return task.job == kPsJob; });
  if (only_servers && !std::exchange(servers_asked_, true)) AskToEnd(/*servers=*/true);
  if (clock().Now() >= end_by_) {
    end_by_ = absl::InfiniteFuture();
    for (const TaskId& task : asked_to_end_)
      if (servers_asked_ || task.job != kPsJob) backend_->End(task, EndMode::kAtOnce);
  }
  if (!asked_to_end_.empty() || !moving_.empty()) return;
  restarts_all_ = false;
  end_by_ = absl::InfiniteFuture();
  for (const TaskId& task : std::exchange(parked_, {})) Relaunch(task);
}

ProcessSpec& TaskRun::SpecOf(const TaskId& task) {
  return *std::find_if(processes_.begin(), processes_.end(),
                       [&task](const ProcessSpec& process) { return process.task == task; });
}

bool TaskRun::StartsOnceMore(const TaskId& task, const ExitStatus& status) {
  const bool is_ended = supervisor_.has_value() ? supervisor_->ending() : interrupts_ > settled_;
  const auto reserved = moves_.addresses().find(task);
  const bool is_launched = std::any_of(processes_.begin(), processes_.end(),
                                       [&task](const ProcessSpec& process) { return process.task == task; });
  if (status.ok() || is_ended || !is_launched || reserved == moves_.addresses().end() || reserved->second.empty())
    return false;
  ProcessSpec& process = SpecOf(task);
  if (!SayThatTheAddressIsInUse(client_.LastLines(task))) return false;
  if (process.release_ports) return GetsOtherPorts(task, status);
  client_.Say(absl::StrCat(client_.NameOf(task), " ", status.ToString(),
                           " and says that its address is in use: starting it once more, with its port not held for it "
                           "(a server that sets SO_REUSEADDR needs no second start)"));
  process.release_ports = true;
  started_once_more_.insert(task);
  LaunchAgain(task);
  return true;
}

// muster's own programs bind beside the reservation, and so never come here: the others know only TF_CONFIG, or its
// like. A port that the user has chosen stays.
bool TaskRun::GetsOtherPorts(const TaskId& task, const ExitStatus& status) {
  const std::vector<uint16_t>& numbers = requests_.at(task);
  const bool are_chosen = std::any_of(numbers.begin(), numbers.end(), [](uint16_t number) { return number != 0; });
  if (!supervisor_.has_value() || are_chosen || !renewed_.insert(task).second) return false;
  client_.Say(absl::StrCat(client_.NameOf(task), " ", status.ToString(),
                           " and says so again: another program has its port, so it gets another one"));
  moving_[task] = "";
  backend_->Renew(task, numbers);
  return true;
}

}  // namespace muster
