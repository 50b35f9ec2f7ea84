#include "muster/launch/backends/local/local_backend.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/check.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/environment_list.h"
#include "muster/cluster/address.h"
#include "muster/launch/backends/local/mounts.h"
#include "muster/launch/backends/local/thread_share.h"
#include "muster/launch/system/find_program.h"
#include "muster/launch/system/pid_fd.h"
#include "muster/launch/task/task_environment.h"
#include "muster/transport/messages/codec.h"

namespace muster {
namespace {

constexpr size_t kReadBytes = 64 << 10;
constexpr char kGroups[] = "control groups";
constexpr char kPortsOf[] = "ports of ";

// What is kept of a task's ports: how many of the descriptors are each one's.
struct PortsFacts {
  std::string job;
  int64_t index = 0;
  std::vector<uint32_t> descriptors;
  using Fields =
      FieldList<Field<1, &PortsFacts::job>, Field<2, &PortsFacts::index>, Field<3, &PortsFacts::descriptors>>;
};

// What is kept of how a task's end comes about.
struct EndFacts {
  int64_t asked_at = -1;
  bool too_much_memory = false;
  bool asked = false;
  using Fields =
      FieldList<Field<1, &EndFacts::asked_at>, Field<2, &EndFacts::too_much_memory>, Field<3, &EndFacts::asked>>;
};

// What is kept of a task beside its process.
struct TaskFacts {
  std::string job;
  int64_t index = 0;
  int64_t mem_limit = 0;
  std::string cgroup;
  int64_t ooms = 0;  // of its control group when it started

  static TaskFacts Of(const TaskId& task) { return {.job = task.job, .index = task.index}; }
  TaskId task() const { return {job, static_cast<int>(index)}; }
  using Fields = FieldList<Field<1, &TaskFacts::job>, Field<2, &TaskFacts::index>, Field<3, &TaskFacts::mem_limit>,
                           Field<4, &TaskFacts::cgroup>, Field<5, &TaskFacts::ooms>>;
};

// Makes sure that descriptors 0 to 2 are taken, because pipes must not get those numbers.
absl::Status TakeLowDescriptors() {
  for (int fd = 0; fd <= 2;) {
    fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd < 0) return absl::ErrnoToStatus(errno, "cannot open /dev/null");
    if (fd > 2) {
      close(fd);
    } else {
      fcntl(fd, F_SETFD, 0);
    }
  }
  return absl::OkStatus();
}

std::string TextOf(const std::string& address, uint16_t port) {
  return HostPort{.host = address, .port = port, .is_ipv6 = absl::StrContains(address, ':')}.ToString();
}

}  // namespace

LocalBackend::LocalBackend(const BackendOptions& options, FdLoop& loop, BackendEvents& events, TaskParent* parent)
    : options_(options),
      loop_(loop),
      events_(events),
      parent_(parent != nullptr ? *parent : own_children_.emplace(options.run_id, loop)),
      memory_watch_(*options.clock, options.resident_bytes),
      oom_kills_(*options.clock) {}

LocalBackend::~LocalBackend() { MUSTER_CHECK(!later_.has_value()); }

absl::Status LocalBackend::Start() {
  MUSTER_CHECK(!later_.has_value());
  RETURN_IF_ERROR(TakeLowDescriptors());
  RETURN_IF_ERROR(parent_.Start());
  later_.emplace(loop_);
  AdoptThings();
  AdoptTasks();
  return absl::OkStatus();
}

void LocalBackend::AdoptThings() {
  for (const auto& [name, thing] : parent_.kept()) {
    if (name == kGroups && thing.descriptors.size() == 1) {
      cgroups_ = Cgroups::Resume(thing.value, fcntl(thing.descriptors[0], F_DUPFD_CLOEXEC, 3));
    } else if (absl::StartsWith(name, kPortsOf)) {
      AdoptPorts(thing);
    }
  }
}

void LocalBackend::AdoptPorts(const KeptThing& thing) {
  PortsFacts facts;
  if (!Decode(thing.value, facts).ok()) return;
  std::vector<FreePorts>& ports = ports_[{facts.job, static_cast<int>(facts.index)}];
  auto next = thing.descriptors.begin();
  for (const uint32_t count : facts.descriptors) {
    std::vector<int> own;
    for (uint32_t left = count; left > 0 && next != thing.descriptors.end(); --left)
      own.push_back(fcntl(*next++, F_DUPFD_CLOEXEC, 3));
    ports.push_back(FreePorts::Of(own));
  }
}

void LocalBackend::AdoptTasks() {
  for (const AdoptedTask& adopted : parent_.Adopt()) {
    TaskFacts facts;
    if (!Decode(adopted.about, facts).ok()) continue;
    Running& running = running_[facts.task()];
    running.child = adopted.child;
    running.label = adopted.label;
    running.mem_limit = facts.mem_limit;
    running.cgroup = facts.cgroup;
    if (const auto end = parent_.kept().find(NameOfEnd(adopted.label)); end != parent_.kept().end()) {
      EndFacts how;
      if (Decode(end->second.value, how).ok()) {
        running.asked_at = how.asked_at;
        running.too_much_memory = how.too_much_memory;
        running.asked = how.asked;
      }
    }
    if (cgroups_ != nullptr && !facts.cgroup.empty()) cgroups_->Resume(facts.task().ToString(), facts.ooms);
    if (facts.mem_limit > 0 && cgroups_ == nullptr && options_.resident_bytes != nullptr)
      memory_watch_.Add(facts.task(), adopted.child.pid, facts.mem_limit);
    Watch(facts.task());
  }
}

int LocalBackend::Stop() {
  if (!later_.has_value()) return 0;
  later_.reset();
  for (auto& [task, running] : running_) {
    const Child& child = running.child;
    SignalGroup(child, SIGKILL);
    ForgetMember(running);
    memory_watch_.Remove(task);
    for (const int fd : {child.pid_fd, child.stdout_fd, child.stderr_fd}) {
      if (fd < 0) continue;
      loop_.Forget(fd);
      if (fd != child.pid_fd) close(fd);
    }
    parent_.Await(running.label, child);
    parent_.Forget(running.label);
    close(child.pid_fd);
  }
  running_.clear();
  ports_.clear();
  const int strays = KillProcessesOfAgent(parent_.agent_id());
  if (cgroups_ != nullptr) cgroups_->Remove();
  cgroups_.reset();
  parent_.Finish();
  return strays;
}

void LocalBackend::Reserve(const TaskId& task, const std::vector<uint16_t>& ports) {
  MUSTER_CHECK(later_.has_value());
  // An earlier backend may have died before it could tell.
  const auto adopted = ports_.find(task);
  if (adopted != ports_.end() && adopted->second.size() != ports.size()) ports_.erase(task);
  const absl::Status held = ports_.contains(task) ? absl::OkStatus() : HoldPorts(task, ports);
  if (!held.ok()) return later_->Add([this, task, held] { events_.OnNotReserved(task, held); });
  std::vector<std::string> addresses;
  for (const FreePorts& port : ports_[task]) addresses.push_back(TextOf(options_.address, port.port(0)));
  later_->Add([this, task, addresses] { events_.OnReserved(task, addresses); });
}

void LocalBackend::Renew(const TaskId& task, const std::vector<uint16_t>& ports) {
  const auto had = ports_.extract(task);  // held meanwhile, so that it doesn't get them again
  Reserve(task, ports);
}

absl::Status LocalBackend::HoldPorts(const TaskId& task, const std::vector<uint16_t>& numbers) {
  std::vector<FreePorts> held;
  for (const uint16_t number : numbers) {
    ASSIGN_OR_RETURN(FreePorts port, number == 0 ? FreePorts::Reserve(1, port_range_, options_.address)
                                                 : FreePorts::Take({.first = number, .count = 1}, options_.address));
    held.push_back(std::move(port));
  }
  ports_.emplace(task, std::move(held));
  KeepPorts(task);
  return absl::OkStatus();
}

void LocalBackend::KeepPorts(const TaskId& task) {
  PortsFacts facts{.job = task.job, .index = task.index, .descriptors = {}};
  KeptThing kept;
  for (const FreePorts& port : ports_.at(task)) {
    const std::vector<int> of_port = port.descriptors();
    facts.descriptors.push_back(static_cast<uint32_t>(of_port.size()));
    kept.descriptors.insert(kept.descriptors.end(), of_port.begin(), of_port.end());
  }
  kept.value = Encode(facts);
  parent_.Keep(absl::StrCat(kPortsOf, task.ToString()), kept);
}

void LocalBackend::KeepEnd(const Running& running) {
  if (running.label.empty()) return;
  const EndFacts how{.asked_at = running.asked_at, .too_much_memory = running.too_much_memory, .asked = running.asked};
  parent_.Keep(NameOfEnd(running.label), {.value = Encode(how), .descriptors = {}});
}

// Its number may be another's once nobody holds it.
void LocalBackend::SignalGroup(const Child& child, int signal) const {
  if (parent_.gone()) {
    SignalPidFd(child.pid_fd, signal);
  } else {
    kill(-child.pid, signal);
  }
}

void LocalBackend::Launch(const ProcessSpec& process) {
  MUSTER_CHECK(later_.has_value() && running_.count(process.task) == 0);
  const TaskId task = process.task;
  const absl::Status launched = TryToLaunch(process);
  if (launched.ok()) return later_->Add([this, task] { OnLaunched(task); });
  later_->Add([this, task, launched] { events_.OnNotStarted(task, launched); });
}

absl::Status LocalBackend::TryToLaunch(const ProcessSpec& process) {
  ChildSpec spec;
  spec.arguments = process.arguments;
  spec.environment = EnvironmentOf(process);
  spec.umask = options_.umask;
  spec.directory = process.directory;
  spec.takes_input = process.takes_input;
  spec.memory_limit = static_cast<uint64_t>(process.limits.mem_bytes.value_or(0));
  const std::string search_path = FindVariableIn(spec.environment, "PATH").value_or("/usr/local/bin:/usr/bin:/bin");
  ASSIGN_OR_RETURN(spec.program, FindProgram(ProgramOf(process), search_path));
  ASSIGN_OR_RETURN(spec.mounts, MountsOf(process));
  ASSIGN_OR_RETURN(spec.cgroup_fd, GroupOf(process));
  if (const auto held = ports_.find(process.task); process.release_ports && held != ports_.end())
    for (FreePorts& port : held->second) port.Release(0);
  const TaskId task = process.task;
  if (process.release_ports && ports_.contains(task)) KeepPorts(task);
  TaskFacts facts = TaskFacts::Of(task);
  facts.mem_limit = process.limits.mem_bytes.value_or(0);
  if (spec.cgroup_fd >= 0) {
    facts.cgroup = cgroups_->Folder(task.ToString());
    facts.ooms = cgroups_->Ooms(task.ToString());
  }
  const auto child = parent_.StartTask(
      {.task = task, .label = process.label, .about = Encode(facts), .has_memory = task.job == kPsJob}, spec);
  if (spec.cgroup_fd >= 0) close(spec.cgroup_fd);
  RETURN_IF_ERROR(child.status());
  running_[task] = {.child = *child, .mem_limit = facts.mem_limit, .label = process.label, .cgroup = facts.cgroup};
  if (child->stdin_fd >= 0) running_[task].input = std::make_unique<TaskInput>(loop_, child->stdin_fd);
  if (process.limits.mem_bytes.has_value() && cgroups_ == nullptr && options_.resident_bytes != nullptr) {
    memory_watch_.Add(task, child->pid, *process.limits.mem_bytes);
  }
  return absl::OkStatus();
}

// Its output and end are watched from here on, so that they are told after the start.
void LocalBackend::OnLaunched(const TaskId& task) {
  Watch(task);
  const Running& running = running_.at(task);
  events_.OnStarted(task, {.pid = running.child.pid, .cgroup = running.cgroup});
}

void LocalBackend::Watch(const TaskId& task) {
  WatchOutput(task, OutputStream::kStdout);
  WatchOutput(task, OutputStream::kStderr);
  loop_.Watch(running_.at(task).child.pid_fd, POLLIN, [this, task](short) { OnEnd(task); });
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
      parent_.Keep(kGroups, {.value = cgroups_->place(), .descriptors = {cgroups_->lock_fd()}});
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

absl::Time LocalBackend::deadline() const {
  // A kill is compared with counters that aren't old.
  return std::min(memory_watch_.deadline(), running_.empty() ? absl::InfiniteFuture() : oom_kills_.deadline());
}

void LocalBackend::OnTime() {
  oom_kills_.OnTime();
  for (const TaskId& task : memory_watch_.Check()) {
    Running& running = running_.at(task);
    running.too_much_memory = true;
    KeepEnd(running);
    SignalGroup(running.child, SIGKILL);
  }
}

std::vector<std::string> LocalBackend::EnvironmentOf(const ProcessSpec& process) {
  std::map<std::string, std::string> variables;
  for (const std::string& variable : options_.environment) {
    const size_t equals = variable.find('=');
    if (equals != std::string::npos) variables[variable.substr(0, equals)] = variable.substr(equals + 1);
  }
  if (!process.directory.empty()) variables["PWD"] = process.directory;
  for (const auto& [name, value] : process.environment) variables[name] = value;
  variables[kAgentIdVariable] = parent_.agent_id();
  const auto usable = [](std::optional<int> limit) { return UsableProcessors(limit); };
  if (const std::optional<ThreadShare> share = ThreadShareOf(variables, usable)) {
    variables[kThreadsVariable] = absl::StrCat(share->threads);
    Note(share->line);
  }
  std::vector<std::string> environment;
  for (const auto& [name, value] : variables) environment.push_back(absl::StrCat(name, "=", value));
  return environment;
}

void LocalBackend::End(const TaskId& task, EndMode mode) {
  const auto found = running_.find(task);
  if (found == running_.end()) return;
  Running& running = found->second;
  const Child& child = running.child;
  running.asked = true;
  if (mode == EndMode::kGently) {
    running.asked_at = TicksSinceBoot();  // taken before the kill, so that processes that start meanwhile are asked too
    KeepEnd(running);
    SignalGroup(child, SIGTERM);
    SignalGroup(child, SIGCONT);  // a stopped process couldn't react to the signal
    return;
  }
  running.asked_at = -1;
  KeepEnd(running);
  SignalGroup(child, SIGKILL);
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

ExitStatus LocalBackend::WithCause(const TaskId& task, ExitStatus status) const {
  const Running& running = running_.at(task);
  const bool too_much = running.too_much_memory || (cgroups_ != nullptr && cgroups_->WasOverMemory(task.ToString()));
  if (too_much && !status.ok()) status.over_memory = running.mem_limit;
  if (too_much || running.asked || parent_.gone() || !status.WasKilled()) return status;
  status.killed_from =
      oom_kills_.WereThereLately(!running.cgroup.empty()) ? KilledFrom::kOutOfMemory : KilledFrom::kOutside;
  return status;
}

// The group is killed while the ended process still holds its number.
void LocalBackend::Finish(const TaskId& task) {
  const Child child = running_.at(task).child;
  SignalGroup(child, SIGKILL);
  ReadWhatIsThere(task, OutputStream::kStdout);
  ReadWhatIsThere(task, OutputStream::kStderr);
  const Running& running = running_.at(task);
  const std::string label = running.label;
  const ExitStatus status = WithCause(task, parent_.Await(label, child));
  close(child.pid_fd);
  memory_watch_.Remove(task);
  running_.erase(task);
  events_.OnExit(task, status);
  parent_.Forget(label);
}

}  // namespace muster
