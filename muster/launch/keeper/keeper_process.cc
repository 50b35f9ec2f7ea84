#include "muster/launch/keeper/keeper_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/clock.h"
#include "muster/launch/backends/local/kernel_file.h"
#include "muster/launch/backends/local/own_children.h"
#include "muster/launch/backends/local/run_processes.h"
#include "muster/launch/system/pid_fd.h"
#include "muster/launch/system/process_mark.h"
#include "muster/transport/messages/codec.h"

namespace muster {
namespace {

// The kernel doesn't count the time that a machine is suspended when it waits, so no wait is longer.
constexpr absl::Duration kLongestWait = absl::Seconds(1);

Socket WatchChildEnds() {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGCHLD);
  return Socket(signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK));
}

}  // namespace

KeeperProcess::KeeperProcess(KeeperOptions options, Socket socket, pid_t agent)
    : options_(std::move(options)),
      identity_(OwnIdentity()),
      socket_(std::move(socket)),
      agent_(agent),
      agent_pid_fd_(OpenPidFd(agent)) {
  std::vector<int> kept = options_.kept;
  kept.push_back(socket_.fd());
  kept.push_back(agent_pid_fd_.fd());
  DetachProcess(options_.title, std::move(kept), /*needs_environment=*/true);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  child_ends_ = WatchChildEnds();
}

void KeeperProcess::Run() {
  // On failure the agent is gone, which the loop sees.
  SendToKeeper(socket_.fd(), KeeperKind::kReady, "").IgnoreError();
  while (true) {
    pollfd watched[] = {{child_ends_.fd(), POLLIN, 0}, {socket_.fd(), POLLIN, 0}};
    const int found = poll(watched, 2, MillisecondsToWait());
    if (found > 0 && watched[0].revents != 0) Reap();
    if (found > 0 && watched[1].revents != 0) ReadAndTake();
    OnTime();
  }
}

// An agent may be stopped, or die, in the middle of a message.
void KeeperProcess::ReadAndTake() {
  const bool goes_on = reader_->Read(socket_.fd(), /*wait=*/false);
  while (std::optional<KeeperMessage> message = reader_->Next()) Take(*std::move(message));
  if (!goes_on) OnAgentGone();
}

int KeeperProcess::MillisecondsToWait() const {
  if (end_at_ == absl::InfiniteFuture()) return -1;
  const absl::Time next = end_at_ + options_.after_agent + (asked_to_end_ ? options_.ending : absl::ZeroDuration());
  const absl::Duration left = std::clamp(next - BootClock().Now(), absl::ZeroDuration(), kLongestWait);
  return static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1))));
}

void KeeperProcess::Take(KeeperMessage message) {
  LabelMessage label;
  EndAtMessage end_at;
  switch (message.kind) {
    case KeeperKind::kKeep:
      return TakeKeep(message);
    case KeeperKind::kStart:
      return TakeStart(message);
    case KeeperKind::kAwait:
      if (Decode(message.body, label).ok()) TakeAwait(label.label);
      return;
    case KeeperKind::kForget:
      if (Decode(message.body, label).ok()) TakeForget(label.label);
      return;
    case KeeperKind::kEndAt:
      if (!Decode(message.body, end_at).ok()) return;
      end_at_ = absl::FromUnixNanos(end_at.boot_nanoseconds);
      asked_to_end_ = false;
      return;
    case KeeperKind::kEnding:
      end_at_ = BootClock().Now();
      asked_to_end_ = true;
      return;
    case KeeperKind::kGoodbye:
      if (!tasks_.empty()) EndAll();
      KillOrphans();
      _exit(0);
    default:
      return;
  }
}

void KeeperProcess::TakeKeep(KeeperMessage& message) {
  KeepMessage keep;
  if (!message.whole || !Decode(message.body, keep).ok()) {
    for (const int fd : message.descriptors) close(fd);
    return;
  }
  auto next = message.descriptors.begin();
  for (size_t i = 0; i < keep.names.size() && i < keep.values.size() && i < keep.descriptors.size(); ++i) {
    for (const int fd : things_[keep.names[i]].descriptors) close(fd);
    KeptThing thing{.value = keep.values[i], .descriptors = {}};
    for (uint32_t left = keep.descriptors[i]; left > 0 && next != message.descriptors.end(); --left)
      thing.descriptors.push_back(*next++);
    if (thing.value.empty() && thing.descriptors.empty()) {
      things_.erase(keep.names[i]);
    } else {
      things_[keep.names[i]] = std::move(thing);
    }
  }
}

void KeeperProcess::TakeStart(KeeperMessage& message) {
  StartMessage start;
  StartedMessage started{.code = static_cast<uint32_t>(absl::StatusCode::kInternal), .why = "it isn't understood"};
  std::vector<int> handed;
  Socket input;
  if (!message.whole) {
    started = {.code = static_cast<uint32_t>(absl::StatusCode::kResourceExhausted), .why = "too many open files"};
  } else if (Decode(message.body, start).ok()) {
    ChildSpec spec = start.ToSpec();
    spec.mark = MarkOf(options_.agent_id);
    if (!message.descriptors.empty()) spec.cgroup_fd = message.descriptors[0];
    if (const auto memory = things_.find(start.memory); memory != things_.end() && !memory->second.descriptors.empty())
      spec.memory_fd = memory->second.descriptors[0];
    absl::StatusOr<Child> child = StartChild(spec);
    if (child.ok()) {
      started = {.pid = child->pid};
      handed = {child->pid_fd, child->stdout_fd, child->stderr_fd};
      if (child->stdin_fd >= 0) handed.push_back(child->stdin_fd);
      input = Socket(std::exchange(child->stdin_fd, -1));  // the agent's alone, as the end of the input is
      tasks_[start.label] = {.about = start.about, .child = *child, .is_ps = !start.memory.empty()};
    } else {
      started = {.code = static_cast<uint32_t>(child.status().code()), .why = std::string(child.status().message())};
    }
  }
  for (const int fd : message.descriptors) close(fd);
  SendToKeeper(socket_.fd(), KeeperKind::kStarted, Encode(started), handed).IgnoreError();
}

// The process isn't reaped, so that its number stays its own until the end is known.
void KeeperProcess::TakeAwait(const std::string& label) {
  EndedMessage ended{.signal = SIGKILL};
  if (const auto task = tasks_.find(label); task != tasks_.end()) {
    AwaitEnd(task->second.child.pid_fd);
    const ExitStatus status = WaitForEnd(task->second.child.pid_fd, WNOWAIT);
    ended = {.code = status.code, .signal = status.signal};
  }
  SendToKeeper(socket_.fd(), KeeperKind::kEnded, Encode(ended)).IgnoreError();
}

void KeeperProcess::TakeForget(const std::string& label) {
  const auto task = tasks_.find(label);
  if (task == tasks_.end()) return;
  const Child child = task->second.child;
  kill(-child.pid, SIGKILL);  // if it hasn't ended; the number is still its own
  tasks_.erase(task);
  if (const auto how = things_.find(NameOfEnd(label)); how != things_.end()) things_.erase(how);
  for (const int fd : {child.pid_fd, child.stdout_fd, child.stderr_fd}) close(fd);
  Reap();
}

void KeeperProcess::OnTime() {
  const absl::Time now = BootClock().Now();
  if (now < end_at_ + options_.after_agent) return;
  if (!asked_to_end_) AskTasksToEnd();
  asked_to_end_ = true;
  if (now >= end_at_ + options_.after_agent + options_.ending) EndAll();
}

void KeeperProcess::AwaitEnd(int pid_fd) {
  pollfd gone = {pid_fd, POLLIN, 0};
  while (poll(&gone, 1, MillisecondsToWait()) != 1) OnTime();
}

// As BackendExecutor::EndAll.
void KeeperProcess::AskTasksToEnd() const {
  for (const auto& [label, task] : tasks_) {
    if (task.is_ps) continue;
    kill(-task.child.pid, SIGTERM);
    kill(-task.child.pid, SIGCONT);  // a stopped process couldn't react to it
  }
}

// Those that tasks have left behind become the keeper's children. A task's own process stays until it is forgotten, and
// hides those that ended after it.
void KeeperProcess::Reap() {
  signalfd_siginfo info;
  while (read(child_ends_.fd(), &info, sizeof info) == sizeof info) {  // one signal may stand for several ends
  }
  for (;;) {
    siginfo_t ended = {};
    if (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid == 0) return;
    for (const auto& [label, task] : tasks_)
      if (task.child.pid == ended.si_pid) return;
    waitpid(ended.si_pid, nullptr, WNOHANG);
  }
}

void KeeperProcess::OnAgentGone() {
  socket_.Close();
  SignalPidFd(agent_pid_fd_.fd(), SIGKILL);
  AwaitEnd(agent_pid_fd_.fd());
  if (asked_to_end_) return;  // the time that they have been given is theirs
  const absl::Time now = BootClock().Now();
  lives_.push_back(now);
  if (lives_.size() > Keeper::kLives) lives_.pop_front();
  if (lives_.size() == Keeper::kLives && now - lives_.front() < absl::Minutes(1)) EndAll();
  StartLife();
}

void KeeperProcess::StartLife() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) EndAll();
  Socket own(ends[0]), its(ends[1]);
  ++life_;
  const pid_t pid = fork();
  if (pid < 0) EndAll();
  if (pid == 0) {
    own.Close();
    child_ends_.Close();
    agent_pid_fd_.Close();
    TakeIdentity(identity_);
    const int code = options_.next_life(MakeAgentsEnd(std::move(its)));
    std::fflush(nullptr);
    _exit(code);
  }
  agent_ = pid;
  agent_pid_fd_ = Socket(OpenPidFd(pid));
  socket_ = std::move(own);
  reader_ = std::make_unique<KeeperReader>();
}

std::unique_ptr<Keeper> KeeperProcess::MakeAgentsEnd(Socket socket) const {
  std::unique_ptr<Keeper> keeper(new Keeper(std::move(socket), getppid(), options_.agent_id));
  keeper->life_ = life_;
  keeper->ends_at_ = end_at_;
  for (const auto& [label, task] : tasks_)
    keeper->adopted_.push_back({.label = label, .about = task.about, .child = task.child});
  keeper->kept_ = things_;
  return keeper;
}

// An agent that hangs in the kernel doesn't keep the tasks alive: it can't start any without this end of its socket.
void KeeperProcess::EndAll() {
  socket_.Close();
  SignalPidFd(agent_pid_fd_.fd(), SIGKILL);
  for (const auto& [label, task] : tasks_) kill(-task.child.pid, SIGKILL);
  KillProcessesOfAgent(options_.agent_id);
  KillOrphans();
  _exit(0);
}

void KeeperProcess::KillOrphans() const {
  constexpr int kRounds = 100;  // a process that hangs in the kernel isn't waited for
  constexpr int kPauseMs = 10;
  const std::string children = absl::StrCat("/proc/self/task/", getpid(), "/children");
  for (int round = 0; round < kRounds; ++round) {
    bool is_any_left = false;
    const std::string pids = ReadKernelFile(children).value_or("");
    for (const absl::string_view word : absl::StrSplit(pids, ' ', absl::SkipWhitespace())) {
      pid_t pid = 0;
      if (!absl::SimpleAtoi(word, &pid) || pid == agent_ || IsDetached(pid)) continue;
      kill(pid, SIGKILL);
      is_any_left |= waitpid(pid, nullptr, WNOHANG) != pid;
    }
    // Its own children have become this process's now.
    if (!is_any_left && (pids.empty() || round > 0)) return;
    poll(nullptr, 0, kPauseMs);
  }
}

}  // namespace muster
