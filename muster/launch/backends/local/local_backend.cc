#include "muster/launch/backends/local/local_backend.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/check.h"
#include "muster/base/os/memory_file.h"
#include "muster/base/status_macros.h"
#include "muster/cluster/address.h"
#include "muster/launch/backends/local/mounts.h"
#include "muster/launch/system/awaited_children.h"
#include "muster/launch/system/find_program.h"
#include "muster/launch/system/pid_fd.h"
#include "muster/launch/system/random_hex.h"
#include "muster/launch/task/task_environment.h"

namespace muster {
namespace {

constexpr size_t kReadBytes = 64 << 10;
constexpr int kAgentIdBytes = 16;

// Makes this process the parent of all orphans below it, so that Stop can wait until every process of the run is gone,
// grandchildren too. Also makes sure that descriptors 0 to 2 are taken, because pipes must not get those numbers.
absl::Status PrepareProcess() {
  for (int fd = 0; fd <= 2;) {
    fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd < 0) return absl::ErrnoToStatus(errno, "cannot open /dev/null");
    if (fd > 2) {
      close(fd);
    } else {
      fcntl(fd, F_SETFD, 0);
    }
  }
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return absl::ErrnoToStatus(errno, "cannot become a subreaper");
  return absl::OkStatus();
}

ExitStatus WaitFor(int pid_fd) {
  siginfo_t info = {};
  while (waitid(P_PIDFD, pid_fd, &info, WEXITED) < 0 && errno == EINTR) {
  }
  if (info.si_code == CLD_EXITED) return {.code = info.si_status};
  return {.signal = info.si_status};
}

std::string TextOf(const std::string& address, uint16_t port) {
  return HostPort{.host = address, .port = port, .is_ipv6 = absl::StrContains(address, ':')}.ToString();
}

}  // namespace

LocalBackend::LocalBackend(const BackendOptions& options, FdLoop& loop, BackendEvents& events)
    : options_(options),
      loop_(loop),
      events_(events),
      agent_id_(RandomHex(kAgentIdBytes)),
      memory_watch_(*options.clock, options.resident_bytes) {}

LocalBackend::~LocalBackend() { MUSTER_CHECK(guard_ == nullptr); }

absl::Status LocalBackend::Start() {
  MUSTER_CHECK(guard_ == nullptr);
  RETURN_IF_ERROR(PrepareProcess());
  ASSIGN_OR_RETURN(orphans_, Orphans::Watch(loop_));
  ASSIGN_OR_RETURN(guard_, Guard::Fork(options_.run_id, agent_id_, options_.kept_lock_fd));
  later_.emplace(loop_);
  return absl::OkStatus();
}

int LocalBackend::Stop() {
  if (guard_ == nullptr) return 0;
  later_.reset();
  for (auto& [task, running] : running_) {
    const Child& child = running.child;
    kill(-child.pid, SIGKILL);
    ForgetMember(running);
    memory_watch_.Remove(task);
    for (const int fd : {child.pid_fd, child.stdout_fd, child.stderr_fd}) {
      if (fd < 0) continue;
      loop_.Forget(fd);
      if (fd != child.pid_fd) close(fd);
    }
    guard_->Forget(child.pid);
    WaitFor(child.pid_fd);
    RemoveAwaitedChild(child.pid);
    close(child.pid_fd);
  }
  running_.clear();
  for (const auto& [task, fd] : memories_) close(fd);
  memories_.clear();
  ports_.clear();
  const int strays = KillProcessesOfAgent(agent_id_);
  orphans_->Reap();
  orphans_.reset();
  if (cgroups_ != nullptr) cgroups_->Remove();
  cgroups_.reset();
  guard_->Finish();
  guard_.reset();
  return strays;
}

void LocalBackend::Reserve(const TaskId& task, const std::vector<uint16_t>& ports) {
  MUSTER_CHECK(guard_ != nullptr && ports_.count(task) == 0);
  const absl::Status held = HoldPorts(task, ports);
  if (!held.ok()) return later_->Add([this, task, held] { events_.OnNotReserved(task, held); });
  std::vector<std::string> addresses;
  for (const FreePorts& port : ports_[task]) addresses.push_back(TextOf(options_.address, port.port(0)));
  later_->Add([this, task, addresses] { events_.OnReserved(task, addresses); });
}

absl::Status LocalBackend::HoldPorts(const TaskId& task, const std::vector<uint16_t>& numbers) {
  std::vector<FreePorts> held;
  for (const uint16_t number : numbers) {
    ASSIGN_OR_RETURN(FreePorts port, number == 0 ? FreePorts::Reserve(1, {}, options_.address)
                                                 : FreePorts::Take({.first = number, .count = 1}, options_.address));
    held.push_back(std::move(port));
  }
  ports_.emplace(task, std::move(held));
  return absl::OkStatus();
}

void LocalBackend::Launch(const ProcessSpec& process) {
  MUSTER_CHECK(guard_ != nullptr && running_.count(process.task) == 0);
  const TaskId task = process.task;
  const absl::Status launched = TryToLaunch(process);
  if (launched.ok()) return later_->Add([this, task] { OnLaunched(task); });
  later_->Add([this, task, launched] { events_.OnNotStarted(task, launched); });
}

absl::Status LocalBackend::TryToLaunch(const ProcessSpec& process) {
  ChildSpec spec;
  spec.arguments = process.arguments;
  spec.environment = EnvironmentOf(process);
  spec.memory_fd = MemoryFd(process.task);
  if (spec.memory_fd >= 0) spec.environment.push_back(absl::StrCat(kArenaFdVariable, "=", spec.memory_fd));
  spec.guard_fd = guard_->fd();
  spec.umask = options_.umask;
  spec.directory = process.directory;
  spec.takes_input = process.takes_input;
  ASSIGN_OR_RETURN(spec.program, FindProgram(ProgramOf(process), SearchPath(spec.environment)));
  ASSIGN_OR_RETURN(spec.mounts, MountsOf(process));
  ASSIGN_OR_RETURN(spec.cgroup_fd, GroupOf(process));
  if (const auto held = ports_.find(process.task); process.release_ports && held != ports_.end())
    for (FreePorts& port : held->second) port.Release(0);
  const auto child = StartChild(spec);
  if (spec.cgroup_fd >= 0) close(spec.cgroup_fd);
  RETURN_IF_ERROR(child.status());
  const TaskId task = process.task;
  AddAwaitedChild(child->pid);
  running_[task] = {.child = *child, .mem_limit = process.limits.mem_bytes.value_or(0)};
  if (child->stdin_fd >= 0) running_[task].input = std::make_unique<TaskInput>(loop_, child->stdin_fd);
  if (spec.cgroup_fd >= 0) running_[task].cgroup = cgroups_->Folder(task.ToString());
  if (process.limits.mem_bytes.has_value() && cgroups_ == nullptr && options_.resident_bytes != nullptr) {
    memory_watch_.Add(task, child->pid, *process.limits.mem_bytes);
  }
  return absl::OkStatus();
}

// Its output and end are watched from here on, so that they are told after the start.
void LocalBackend::OnLaunched(const TaskId& task) {
  const Running& running = running_.at(task);
  WatchOutput(task, OutputStream::kStdout);
  WatchOutput(task, OutputStream::kStderr);
  loop_.Watch(running.child.pid_fd, POLLIN, [this, task](short) { OnEnd(task); });
  events_.OnStarted(task, {.pid = running.child.pid, .cgroup = running.cgroup});
}

// A relative path is relative to where the process runs.
std::string LocalBackend::ProgramOf(const ProcessSpec& process) const {
  const std::string& program = process.arguments.at(0);
  const bool relative = program.find('/') != std::string::npos && program[0] != '/';
  return relative && !process.directory.empty() ? absl::StrCat(process.directory, "/", program) : program;
}

absl::StatusOr<std::vector<ProcessMount>> LocalBackend::MountsOf(const ProcessSpec& process) {
  if (process.mounts.empty()) return process.mounts;
  if (!may_mount_.has_value()) may_mount_ = TryMounts();
  std::string note;
  ASSIGN_OR_RETURN(std::vector<ProcessMount> mounts, MountsFor(process.mounts, *may_mount_, &note));
  if (!note.empty()) Note(note);
  return mounts;
}

absl::StatusOr<int> LocalBackend::GroupOf(const ProcessSpec& process) {
  if (!process.limits.cpus.has_value() && !process.limits.mem_bytes.has_value()) return -1;
  if (!options_.control_groups) no_cgroups_ = "control groups are not used";
  if (cgroups_ == nullptr && !no_cgroups_.has_value()) {
    auto opened = Cgroups::Open(options_.run_id);
    if (opened.ok()) {
      cgroups_ = *std::move(opened);
    } else {
      no_cgroups_ = absl::StrCat("no control groups for this process: ", std::string(opened.status().message()));
    }
  }
  if (cgroups_ == nullptr) {
    NoteWithoutGroups(process.limits);
    return -1;
  }
  if (process.limits.cpus.has_value() && !cgroups_->limits_cpus()) {
    Note("tasks' cpus are not limited (the control groups here have no cpu controller)");
  }
  return cgroups_->Enter(process.task.ToString(), process.limits);
}

void LocalBackend::NoteWithoutGroups(const ProcessLimits& limits) {
  std::vector<std::string> facts;
  if (limits.cpus.has_value()) facts.emplace_back("tasks' cpus are not limited");
  if (limits.mem_bytes.has_value())
    facts.emplace_back(
        options_.resident_bytes != nullptr
            ? "tasks' memory is checked once a second, and a task that uses more than its limit is killed"
            : "tasks' memory is not limited");
  if (!facts.empty()) Note(absl::StrCat(absl::StrJoin(facts, "; "), " (", *no_cgroups_, ")"));
}

void LocalBackend::Note(const std::string& line) {
  if (noted_.insert(line).second && options_.note) options_.note(line);
}

void LocalBackend::OnTime() {
  for (const TaskId& task : memory_watch_.Check()) {
    Running& running = running_.at(task);
    running.too_much_memory = true;
    kill(-running.child.pid, SIGKILL);
  }
}

int LocalBackend::MemoryFd(const TaskId& task) {
  if (task.job != kPsJob) return -1;
  const auto [memory, added] = memories_.try_emplace(task, -1);
  // If this fails, the ps has memory of its own, which is lost when it is killed.
  if (added) memory->second = CreateMemoryFile("muster-arena");
  return memory->second;
}

std::vector<std::string> LocalBackend::EnvironmentOf(const ProcessSpec& process) const {
  std::map<std::string, std::string> variables;
  for (const std::string& variable : options_.environment) {
    const size_t equals = variable.find('=');
    if (equals != std::string::npos) variables[variable.substr(0, equals)] = variable.substr(equals + 1);
  }
  if (!process.directory.empty()) variables["PWD"] = process.directory;
  for (const auto& [name, value] : process.environment) variables[name] = value;
  variables[kAgentIdVariable] = agent_id_;
  std::vector<std::string> environment;
  for (const auto& [name, value] : variables) environment.push_back(absl::StrCat(name, "=", value));
  return environment;
}

std::string LocalBackend::SearchPath(const std::vector<std::string>& environment) const {
  for (const std::string& variable : environment) {
    if (absl::StartsWith(variable, "PATH=")) return variable.substr(5);
  }
  return "/usr/local/bin:/usr/bin:/bin";
}

void LocalBackend::End(const TaskId& task, EndMode mode) {
  const auto found = running_.find(task);
  if (found == running_.end()) return;
  Running& running = found->second;
  const Child& child = running.child;
  if (mode == EndMode::kGently) {
    running.asked_at = TicksSinceBoot();  // taken before the kill, so that processes that start meanwhile are asked too
    kill(-child.pid, SIGTERM);
    kill(-child.pid, SIGCONT);  // a stopped process couldn't react to the signal
    return;
  }
  running.asked_at = -1;
  kill(-child.pid, SIGKILL);
  if (running.member_fd < 0) return;
  ForgetMember(running);
  loop_.Watch(child.pid_fd, POLLIN, [this, task](short) { OnEnd(task); });
}

void LocalBackend::PauseOutput(bool paused) {
  if (paused == paused_) return;
  paused_ = paused;
  for (const auto& [task, running] : running_) {
    for (const int fd : {running.child.stdout_fd, running.child.stderr_fd}) {
      if (fd >= 0) loop_.SetEvents(fd, paused ? 0 : POLLIN);
    }
  }
}

void LocalBackend::Input(const TaskId& task, std::string_view bytes) {
  const auto found = running_.find(task);
  if (found == running_.end() || found->second.input == nullptr) return;
  TaskInput& input = *found->second.input;
  input.Add(bytes);
  if (input.waiting() <= kMaxWaitingInput) return;
  Note(absl::StrCat(task.ToString(), " is killed: ", input.waiting(), " bytes wait that it doesn't read"));
  found->second.input.reset();
  End(task, EndMode::kAtOnce);
}

int& LocalBackend::OutputFd(const TaskId& task, OutputStream stream) {
  Child& child = running_.at(task).child;
  return stream == OutputStream::kStdout ? child.stdout_fd : child.stderr_fd;
}

void LocalBackend::WatchOutput(const TaskId& task, OutputStream stream) {
  loop_.Watch(OutputFd(task, stream), paused_ ? 0 : POLLIN, [this, task, stream](short) { ReadOnce(task, stream); });
}

size_t LocalBackend::ReadOnce(const TaskId& task, OutputStream stream) {
  int& fd = OutputFd(task, stream);
  if (fd < 0) return 0;
  char buffer[kReadBytes];
  ssize_t got;
  do {
    got = read(fd, buffer, sizeof buffer);
  } while (got < 0 && errno == EINTR);
  if (got > 0) {
    events_.OnOutput(task, stream, std::string_view(buffer, got));
    return got;
  }
  if (got == 0 || errno != EAGAIN) {
    loop_.Forget(fd);
    close(std::exchange(fd, -1));
  }
  return 0;
}

// Reads what a task had left in the pipe when it ended, at most what a pipe holds: a process that left the group may go
// on writing for ever.
void LocalBackend::ReadWhatIsThere(const TaskId& task, OutputStream stream) {
  const int fd = OutputFd(task, stream);
  if (fd < 0) return;
  const int capacity = fcntl(fd, F_GETPIPE_SZ);
  for (int64_t left = capacity; left > 0;) {
    const size_t got = ReadOnce(task, stream);
    if (got == 0) break;
    left -= static_cast<int64_t>(got);
  }
  if (OutputFd(task, stream) < 0) return;
  loop_.Forget(fd);
  close(std::exchange(OutputFd(task, stream), -1));
}

// A shell ends at once when asked to, while the programs that it started may still save a model; they get their time,
// too.
void LocalBackend::OnEnd(const TaskId& task) {
  const Running& running = running_.at(task);
  loop_.Forget(running.child.pid_fd);
  if (running.asked_at < 0 || !AwaitMember(task)) Finish(task);
}

void LocalBackend::OnMemberEnd(const TaskId& task) {
  ForgetMember(running_.at(task));
  if (!AwaitMember(task)) Finish(task);
}

bool LocalBackend::AwaitMember(const TaskId& task) {
  Running& running = running_.at(task);
  const ProcessGroups& all = GroupsOfThisRound();
  const auto group = all.groups.find(running.child.pid);
  if (group == all.groups.end()) return false;
  for (const GroupProcess& process : group->second) {
    const int fd = OpenPidFd(process.pid);
    if (fd < 0) continue;
    const bool is_member =
        getpgid(process.pid) == running.child.pid;  // otherwise another process has the number by now
    // A shell may have started the process before it was asked to end itself.
    if (is_member && process.started >= running.asked_at) SignalPidFd(fd, SIGTERM);
    if (!is_member || running.member_fd >= 0) {
      close(fd);
      continue;
    }
    running.member_fd = fd;
    loop_.Watch(fd, POLLIN, [this, task](short) { OnMemberEnd(task); });
  }
  running.asked_at = std::max(running.asked_at, all.began);
  return running.member_fd >= 0;
}

const ProcessGroups& LocalBackend::GroupsOfThisRound() {
  if (looks_ == 0 || groups_round_ != loop_.rounds()) {
    groups_ = ReadProcessGroups();
    groups_round_ = loop_.rounds();
    ++looks_;
  }
  return groups_;
}

void LocalBackend::ForgetMember(Running& running) {
  if (running.member_fd < 0) return;
  loop_.Forget(running.member_fd);
  close(std::exchange(running.member_fd, -1));
}

// The group is killed while the ended process still holds its number, and the guard forgets it before the number is
// freed, so that no signal can ever reach a later process with the same number.
void LocalBackend::Finish(const TaskId& task) {
  const Child child = running_.at(task).child;
  kill(-child.pid, SIGKILL);
  ReadWhatIsThere(task, OutputStream::kStdout);
  ReadWhatIsThere(task, OutputStream::kStderr);
  guard_->Forget(child.pid);
  ExitStatus status = WaitFor(child.pid_fd);
  const Running& running = running_.at(task);
  const bool too_much = running.too_much_memory || (cgroups_ != nullptr && cgroups_->WasOverMemory(task.ToString()));
  if (too_much && !status.ok()) status.over_memory = running.mem_limit;
  close(child.pid_fd);
  memory_watch_.Remove(task);
  running_.erase(task);
  RemoveAwaitedChild(child.pid);
  orphans_->Reap();  // those that ended after it
  events_.OnExit(task, status);
}

}  // namespace muster
