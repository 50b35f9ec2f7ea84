// The two ends of the agents' protocol with nothing behind them: they note what they are told and asked for, as lines.
// For tests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "muster/launch/agent/agent_link.h"
#include "muster/launch/agent/command_executor.h"
#include "muster/launch/agent/supervisor_link.h"

namespace muster {

// Notes what a supervisor is told.
class NotedEvents final : public AgentLinkEvents {
 public:
  void OnAttached(const std::string&, uint64_t life, const std::vector<HeldLaunch>& launches) override {
    lines.push_back(absl::StrCat("attached to life ", life, " with ", launches.size()));
  }
  void OnSuspect(bool suspect) override { lines.push_back(suspect ? "suspect" : "heard again"); }
  void OnReserved(const CommandId& command, const TaskId&, const std::vector<std::string>& addresses) override {
    lines.push_back(absl::StrCat("reserved ", command.ToString(), " ", addresses.at(0)));
  }
  void OnStarted(const CommandId& launch, const TaskId& task, int64_t pid) override {
    lines.push_back(absl::StrCat("started ", launch.ToString(), " ", task.ToString(), " ", pid));
  }
  void OnFailed(const CommandId& command, const TaskId&, const absl::Status& status) override {
    lines.push_back(absl::StrCat("failed ", command.ToString(), " ", status.message()));
  }
  void OnStopped(uint64_t strays) override { lines.push_back(absl::StrCat("stopped ", strays)); }
  void OnOutput(const CommandId&, OutputStream, uint64_t position, std::string_view bytes) override {
    output.resize(position, '?');
    output += bytes;
  }
  void OnOutputLost(const CommandId&, OutputStream, uint64_t position, uint64_t bytes) override {
    lines.push_back(absl::StrCat("lost ", bytes, " at ", position));
  }
  void OnExit(const CommandId& launch, const TaskId&, const ExitStatus& status, bool) override {
    lines.push_back(absl::StrCat("exit ", launch.ToString(), " ", status.code));
  }
  void OnUsage(const UsageEntry& usage) override { lines.push_back(absl::StrCat("usage ", usage.launches.size())); }
  void OnNote(const std::string& line) override { lines.push_back(line); }

  std::vector<std::string> Taken() { return std::exchange(lines, {}); }

  std::vector<std::string> lines;
  std::string output;
};

// A host that does nothing by itself: a journal in memory, and commands as lines.
class NotedHost final : public AgentJournal, public CommandExecutor {
 public:
  void SetSupervisor(uint64_t number, const std::string& id) override {
    record.supervisor = number;
    record.supervisor_id = id;
    record.taken_in = 0;
  }
  void TakeIn(const OpenCommand& command) override {
    record.open.push_back(command);
    record.taken_in = command.command.number;
    record.stopping |= command.kind == EntryKind::kStop;
  }
  void Close(const CommandId& command) override {
    std::erase_if(record.open, [&](const OpenCommand& open) { return open.command == command; });
  }
  void SetAnswered(absl::Time answered) override { record.answered = answered; }

  void Reserve(const CommandId& command, const ReserveEntry& reserve) override {
    lines.push_back(absl::StrCat("reserve ", command.ToString(), " ", reserve.ports.size()));
  }
  void Launch(const CommandId& launch, const LaunchEntry& process) override {
    lines.push_back(absl::StrCat("launch ", launch.ToString(), " ", process.arguments[0]));
  }
  void End(const CommandId& launch, EndMode) override { lines.push_back(absl::StrCat("end ", launch.ToString())); }
  void WriteHosts(const std::string& file) override { lines.push_back("hosts " + file); }
  void Input(const CommandId& launch, std::string_view bytes) override {
    lines.push_back(absl::StrCat("input ", launch.ToString(), " ", bytes.size()));
  }
  void Stop() override { lines.push_back("stop"); }
  std::vector<HeldLaunch> Launches() const override { return launches; }
  void Forget(const CommandId& launch) override { lines.push_back("forget " + launch.ToString()); }
  void DropReservations() override { lines.push_back("drop reservations"); }
  void EndAll(EndMode mode) override { lines.push_back(mode == EndMode::kGently ? "end all" : "kill all"); }

  std::vector<std::string> Taken() { return std::exchange(lines, {}); }

  AgentRecord record;
  std::vector<HeldLaunch> launches;
  std::vector<std::string> lines;
};

}  // namespace muster
