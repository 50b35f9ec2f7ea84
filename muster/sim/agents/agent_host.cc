#include "muster/sim/agents/agent_host.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr uint64_t kPipeBytes = 64 << 10;
constexpr OutputStream kStreams[] = {OutputStream::kStdout, OutputStream::kStderr};

}  // namespace

AgentHost::AgentHost(AgentTruth& truth, int number, std::function<void()> agent_gone)
    : truth_(truth), number_(number), agent_gone_(std::move(agent_gone)) {
  record_.agent_id = std::string(kIdBytes, static_cast<char>('0' + number));
  record_.life = 0;
  record_.answered = Now();
}

bool AgentHost::Point() {
  if (dead_) return false;
  if (!points_.Pass()) return true;
  dead_ = true;
  truth_.world.At(Now(), [this] { AgentDied(); });
  return false;
}

void AgentHost::StartAgent() {
  if (gone_ || agent_) return;
  ++record_.life;
  dead_ = false;
  ++generation_;
  stop_asked_ = false;
  stop_answered_ = false;
  truth_.Note([&] { return absl::StrCat(Name(), " starts life ", record_.life, " of its agent"); });
  agent_ = std::make_unique<SupervisorLink>(
      SupervisorLinkOptions{.job = "job", .limits = truth_.limits, .probe = &truth_.probe}, record_, *this, *this);
  agent_->Resume();
}

void AgentHost::KillAgentAt(uint64_t passes, absl::Duration back_after) {
  back_after_ = back_after;
  points_.KillAt(passes);
}

void AgentHost::AgentDied() {
  if (!agent_) return;
  truth_.Note([&] { return absl::StrCat(Name(), ": the agent is killed"); });
  agent_.reset();
  ++generation_;
  points_ = {};
  for (auto& [launch, task] : tasks_) task.read_by_dead = task.read;
  agent_gone_();
  if (!gone_) truth_.world.At(Now() + back_after_, [this] { StartAgent(); });
}

void AgentHost::PauseAgent(absl::Duration lasts) { paused_until_ = std::max(paused_until_, Now() + lasts); }

void AgentHost::KillHost() {
  truth_.Note([&] { return absl::StrCat(Name(), " is gone"); });
  gone_ = true;
  dead_ = true;
  for (auto& [launch, task] : tasks_)
    if (task.running) EndTask(launch);
  AgentDied();
}

void AgentHost::Tick() {
  GuardAgainstSilence();
  for (const auto& [launch, task] : tasks_)
    if (task.running) Write(launch);
  if (link() == nullptr || !Point()) return;
  agent_->OnTime(Now());
  ReadPipes();
  if (dead_) return;
  const bool over = agent_->ending() && runs_nothing();
  if (!over && !agent_->stopped()) return;
  truth_.Note([&] { return absl::StrCat(Name(), ": the agent ends itself"); });
  gone_ = true;
  dead_ = true;
  AgentDied();
}

// The guard knows the same moment, for an agent that isn't there or doesn't run.
void AgentHost::GuardAgainstSilence() {
  if (gone_ || Now() < record_.answered + truth_.limits.grace + truth_.limits.ending) return;
  for (auto& [launch, task] : tasks_)
    if (task.running) EndTask(launch);
  if (agent_) return;
  gone_ = true;
  agent_gone_();
}

uint64_t AgentHost::ReadByTheDead(const CommandId& launch, OutputStream stream) const {
  const auto found = tasks_.find(launch);
  return found == tasks_.end() ? 0 : found->second.read_by_dead.of(stream);
}

uint64_t AgentHost::Written(const CommandId& launch, OutputStream stream) const {
  const auto found = tasks_.find(launch);
  return found == tasks_.end() ? 0 : found->second.written.of(stream);
}

void AgentHost::SetSupervisor(uint64_t number, const std::string& id) {
  if (!Point()) return;
  if (number <= record_.supervisor)
    truth_.Violated(absl::StrCat(Name(), ": supervisor ", number, " takes over from supervisor ", record_.supervisor));
  truth_.Note([&] { return absl::StrCat(Name(), ": supervisor ", number, " takes over"); });
  record_.supervisor = number;
  record_.supervisor_id = id;
  record_.taken_in = 0;
  Point();
}

void AgentHost::TakeIn(const OpenCommand& command) {
  if (!Point()) return;
  const auto write = [this, command] {
    record_.open.push_back(command);
    record_.taken_in = command.command.number;
    record_.stopping |= command.kind == EntryKind::kStop;
  };
  ++truth_.commands;
  if (truth_.probe.Has(PlantedAgentBug::kAcknowledgeUnwritten)) {
    truth_.world.At(Now() + absl::Milliseconds(700), [this, write, generation = generation_] {
      if (generation == generation_ && !dead_) write();
    });
    return;
  }
  write();
  Point();
}

void AgentHost::Close(const CommandId& command) {
  if (!Point()) return;
  std::erase_if(record_.open, [&](const OpenCommand& open) { return open.command == command; });
  Point();
}

void AgentHost::SetAnswered(absl::Time answered) {
  if (!dead_) record_.answered = answered;
}

void AgentHost::Reserve(const CommandId& command, const ReserveEntry& reserve) {
  if (!Point()) return;
  agent_->SendReserved(command, std::vector<std::string>(reserve.ports.size(), "h:1"));
}

void AgentHost::Launch(const CommandId& launch, const LaunchEntry& process) {
  if (!Point()) return;
  const bool no_program = truth_.random.Below(20) == 0;
  truth_.world.At(Now() + truth_.Draw(absl::Milliseconds(1), absl::Milliseconds(80)),
                  [this, launch, task = process.task, no_program, generation = generation_] {
                    if (generation != generation_ || gone_ || dead_) return;  // the guard has closed its socket
                    const bool fails = no_program || stop_asked_ || agent_->ending();
                    if (!fails) StartTask(launch, task);
                    if (!Point()) return;
                    if (fails) {
                      agent_->SendFailed(launch, task, absl::NotFoundError("no such program"));
                    } else {
                      agent_->SendStarted(launch, task, 100);
                    }
                    Point();
                  });
}

void AgentHost::StartTask(const CommandId& launch, const TaskId& task) {
  const auto [found, is_new] = tasks_.try_emplace(launch, Task{.task = task});
  if (!is_new)
    return truth_.Violated(
        absl::StrCat(Name(), ": ", task.ToString(), " is started twice by command ", launch.ToString()));
  if (task.job == kPsJob)
    for (const auto& [host, other] : truth_.running)
      if (truth_.tasks.at({host, other}) == task)
        truth_.Violated(absl::StrCat(Name(), ": ", task.ToString(), " starts while it runs on host ", host));
  truth_.Note([&] { return absl::StrCat(Name(), ": ", task.ToString(), " starts by ", launch.ToString()); });
  ++running_;
  ++truth_.launches;
  truth_.running.insert({number_, launch});
  truth_.tasks[{number_, launch}] = task;
  if (truth_.random.Below(4) == 0)
    truth_.world.At(Now() + truth_.Draw(absl::Milliseconds(1), absl::Seconds(20)), [this, launch] { EndTask(launch); });
}

void AgentHost::EndTask(const CommandId& launch) {
  const auto found = tasks_.find(launch);
  if (found == tasks_.end() || !found->second.running) return;
  Write(launch);  // its last words
  found->second.running = false;
  --running_;
  truth_.running.erase({number_, launch});
  truth_.Note(
      [&] { return absl::StrCat(Name(), ": ", found->second.task.ToString(), " of ", launch.ToString(), " ends"); });
}

void AgentHost::Write(const CommandId& launch) {
  Task& task = tasks_.at(launch);
  for (const OutputStream stream : kStreams) {
    const uint64_t most = truth_.random.Below(8) == 0 ? 60'000 : 300;
    const uint64_t room = kPipeBytes - (task.written.of(stream) - task.read.of(stream));
    task.written.of(stream) += std::min(room, truth_.random.Below(most));
  }
}

void AgentHost::ReadPipes() {
  for (auto& [launch, task] : tasks_) {
    if (task.forgotten || task.exited_in == record_.life) continue;
    // A life that hasn't told of the start yet (Resume does for an earlier one) reads nothing.
    for (const OutputStream stream : kStreams) {
      const uint64_t from = task.read.of(stream);
      const uint64_t bytes = task.written.of(stream) - from;
      if (bytes == 0 || !agent_->may_send_output()) continue;
      if (!Point()) return;
      std::string text;
      for (uint64_t i = 0; i < bytes; ++i) text += AgentTruth::ByteAt(launch, stream, from + i);
      task.read.of(stream) += bytes;
      if (!Point()) return;
      agent_->SendOutput(launch, stream, from, text);
    }
    if (task.running || task.read != task.written) continue;
    if (!Point()) return;
    task.exited_in = record_.life;
    agent_->SendExited(launch, task.task, {.code = 1}, task.read);
    if (!Point()) return;
  }
  if (!stop_asked_ || stop_answered_ || running_ > 0) return;
  for (const auto& [launch, task] : tasks_)
    if (!task.forgotten && task.exited_in != record_.life) return;
  if (!Point()) return;
  stop_answered_ = true;
  agent_->SendStopped(0);
  Point();
}

void AgentHost::End(const CommandId& launch, EndMode mode) {
  if (!Point()) return;
  const absl::Duration takes =
      mode == EndMode::kAtOnce ? absl::Milliseconds(5) : truth_.Draw(absl::Milliseconds(5), absl::Seconds(2));
  truth_.world.At(Now() + takes, [this, launch] { EndTask(launch); });
  Point();
}

void AgentHost::Stop() {
  if (!Point()) return;
  stop_asked_ = true;
  stop_answered_ = false;
  EndAll(EndMode::kAtOnce);
}

void AgentHost::EndAll(EndMode mode) {
  if (!Point()) return;
  for (const auto& [launch, task] : tasks_)
    if (task.running) End(launch, mode);
}

std::vector<HeldLaunch> AgentHost::Launches() const {
  std::vector<HeldLaunch> held;
  for (const auto& [launch, task] : tasks_)
    if (!task.forgotten) held.push_back({.launch = launch, .task = task.task, .pid = task.running ? 100 : 0});
  return held;
}

void AgentHost::Forget(const CommandId& launch) {
  if (Point()) tasks_.at(launch).forgotten = true;
  Point();
}

}  // namespace muster
