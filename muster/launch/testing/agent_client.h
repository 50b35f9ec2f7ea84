// A supervisor's end of a stream with an agent, which notes all that it is told. Used by the loop's thread. Test-only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/clock.h"
#include "muster/launch/agent/agent_connection.h"
#include "muster/launch/agent/agent_link.h"
#include "muster/launch/system/fd_loop.h"

namespace muster {

class AgentClient final : public AgentLinkEvents {
 public:
  AgentClient(FdLoop& loop, std::string job, uint64_t number = 1)
      : loop_(loop),
        job_(std::move(job)),
        link({.job = job_, .supervisor = number, .supervisor_id = std::string(kIdBytes, 's')}, *this,
             RealClock().Now()) {}

  // Speaks over these from now on. They must be non-blocking and stay the caller's. `key`: of a stream over TCP.
  void Dial(int in, int out, const std::string& key = "") {
    HangUp();
    const std::string token = key.empty() ? TokenOfLocalStream(job_) : key;
    connection_ = std::make_unique<AgentConnection>(
        loop_, in, out, std::make_unique<ClientHandshake>(HandshakeIdentity{.token = {token}}, RandomNonce()),
        StreamOwner{.passed =
                        [this, key](const std::string& hellos) {
                          link.OnStream(RealClock().Now(),
                                        key.empty() ? std::nullopt : std::optional(FrameMac(key, hellos)));
                        },
                    .take = [this](ByteSpan bytes) { return link.OnBytes(RealClock().Now(), bytes); },
                    .next = [this] { return link.NextFrame(RealClock().Now()); },
                    .ended =
                        [this](const absl::Status& why) {
                          why_ended = why;
                          HangUp();
                        }});
  }
  void HangUp() {
    connection_.reset();
    link.OnStreamEnd();
  }
  bool connected() const { return connection_ != nullptr; }
  // Call it after each round of the loop.
  void OnTime() {
    const absl::Time now = RealClock().Now();
    link.OnNumberRead(now);
    link.OnTime(now);
    if (connection_) connection_->Write();
  }

  void OnAttached(const std::string& agent_id, uint64_t, const std::vector<HeldLaunch>& launches) override {
    ++attached;
    agent = agent_id;
    held = launches;
  }
  void OnSuspect(bool) override {}
  void OnReserved(const CommandId& command, const TaskId&, const std::vector<std::string>& addresses) override {
    reserved[command] = addresses;
  }
  void OnStarted(const CommandId& launch, const TaskId&, int64_t pid) override { started[launch] = pid; }
  void OnFailed(const CommandId& command, const TaskId&, const absl::Status& status) override {
    failed[command] = status;
  }
  void OnStopped(uint64_t strays) override { stopped = strays; }
  void OnOutput(const CommandId& launch, OutputStream stream, uint64_t, std::string_view bytes) override {
    if (on_output) return on_output(launch, bytes);
    (stream == OutputStream::kStdout ? out : err)[launch] += bytes;
  }
  void OnOutputLost(const CommandId& launch, OutputStream, uint64_t position, uint64_t bytes) override {
    mistakes.push_back(absl::StrCat(launch.ToString(), " lost ", bytes, " bytes at ", position));
  }
  void OnExit(const CommandId& launch, const TaskId&, const ExitStatus& status, bool unsure) override {
    if (unsure) mistakes.push_back(absl::StrCat(launch.ToString(), " has an unsure end"));
    if (!exits.emplace(launch, status).second) mistakes.push_back(absl::StrCat(launch.ToString(), " ends twice"));
  }
  void OnUsage(const UsageEntry& entry) override { usage = entry.launches; }
  void OnNote(const std::string& line) override { notes.push_back(line); }

 private:
  FdLoop& loop_;
  const std::string job_;

 public:
  AgentLink link;
  int attached = 0;  // how often
  std::string agent;
  std::vector<HeldLaunch> held;
  std::map<CommandId, std::vector<std::string>> reserved;
  std::map<CommandId, int64_t> started;
  std::map<CommandId, absl::Status> failed;
  std::optional<uint64_t> stopped;
  std::function<void(const CommandId& launch, std::string_view bytes)> on_output;  // instead of the next two
  std::map<CommandId, std::string> out, err;
  std::map<CommandId, ExitStatus> exits;
  std::vector<LaunchUsage> usage;
  std::vector<std::string> notes;
  std::vector<std::string> mistakes;  // of the agent
  absl::Status why_ended;             // the last stream

 private:
  std::unique_ptr<AgentConnection> connection_;
};

}  // namespace muster
