// An agent's end of the protocol with its supervisor (docs/agents.md): takes in commands, each once, whatever the
// streams and the supervisors do, and sends events until they are acknowledged. A state machine as AgentLink: told what
// has come and what time it is, it says which bytes to write. It opens nothing and never waits; it calls AgentJournal
// and CommandExecutor only from within the calls below. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/launch/agent/agent_limits.h"
#include "muster/launch/agent/agent_probe.h"
#include "muster/launch/agent/command_executor.h"
#include "muster/launch/agent/entries.h"
#include "muster/launch/agent/entry_sender.h"
#include "muster/launch/agent/frame_stream.h"

namespace muster {

struct SupervisorLinkOptions {
  std::string job;
  AgentLimits limits;
  const AgentProbe* probe = nullptr;
};

class SupervisorLink {
 public:
  enum class StreamId : uint64_t {};

  // `record`: what the journal holds, of a life before this one too; its `life` is this one's. Borrows `journal` and
  // `executor`.
  SupervisorLink(SupervisorLinkOptions options, AgentRecord record, AgentJournal& journal, CommandExecutor& executor);

  // Finishes the commands that an earlier life has taken in and not answered. Call once, when the executor knows which
  // launches there are, before the first stream.
  void Resume();

  // A stream has passed its handshake. It takes commands once its `attach` has been accepted; the one that was attached
  // before is closed then. Streams that don't attach are kept up to kWaiting, the newest.
  StreamId OnStream(absl::Time now, const std::optional<FrameMac>& mac = std::nullopt);
  void OnStreamEnd(StreamId stream);
  // After an error the stream must be closed; it is forgotten already.
  [[nodiscard]] absl::Status OnBytes(absl::Time now, StreamId stream, ByteSpan bytes);
  // Returns a frame to write, "" if there is none now. Call it when the stream has room, so that a frame is made when
  // it goes, and until it returns "".
  std::string NextFrame(absl::Time now, StreamId stream);
  // Returns whether the stream is of use; if not, close it once NextFrame returns "".
  bool Wants(StreamId stream) const;

  // Must be called at deadline(); may be called at any time.
  void OnTime(absl::Time now);
  absl::Time deadline() const;
  // Goes on as if the grace were over, and leaves all streams but `kept`.
  void EndNow(absl::Time now, std::optional<StreamId> kept = std::nullopt);

  // Answers to commands, which CommandExecutor was asked to execute: one for each.
  void SendReserved(const CommandId& command, const std::vector<std::string>& addresses);
  void SendStarted(const CommandId& launch, const TaskId& task, int64_t pid);
  void SendFailed(const CommandId& command, const TaskId& task, const absl::Status& status);
  void SendStopped(uint64_t strays);
  // After SendStarted of the launch, in the order of positions. Bytes of any number.
  void SendOutput(const CommandId& launch, OutputStream stream, uint64_t position, std::string_view bytes);
  // After all output of the launch. CommandExecutor::Forget follows when the supervisor has it.
  void SendExited(const CommandId& launch, const TaskId& task, const ExitStatus& status, const OutputEnds& ends);
  // Replaces an earlier one that hasn't been sent.
  void SendUsage(const UsageEntry& usage);
  // Left out if too much is kept already.
  void SendNote(std::string_view line);
  // While it is false, leave output in the pipes.
  bool may_send_output() const;

  // No supervisor has answered for the grace: all tasks have been asked to end.
  bool ending() const { return ending_since_ != absl::InfiniteFuture(); }
  // The stream that takes commands, if there is one.
  const std::optional<StreamId>& attached() const { return attached_; }
  // The supervisor knows that everything has ended: the agent may end.
  bool stopped() const { return stopped_; }
  uint64_t supervisor() const { return record_.supervisor; }

 private:
  static constexpr size_t kWaiting = 8;

  bool Has(PlantedAgentBug bug) const { return options_.probe != nullptr && options_.probe->Has(bug); }
  absl::Status TakeFrame(absl::Time now, StreamId id, AgentFrame& frame);
  absl::Status TakeAttach(absl::Time now, StreamId id, const AttachEntry& attach);
  std::optional<Refusal> RefusalOf(const AttachEntry& attach) const;
  absl::Status TakeCommand(EntryKind kind, const std::string& body);
  // Does what an open command asks for.
  absl::Status Execute(const OpenCommand& command);
  void Close(const CommandId& command);
  absl::Status Acknowledge(uint64_t number);
  void Renew(absl::Time answered);
  // The grace of an agent that waits for its first supervisor longer than that begins with this stream.
  void BeginGrace(StreamId stream);
  // Returns whether it has; then no stream is left but `kept`.
  bool EndIfGraceIsOver(absl::Time now, std::optional<StreamId> kept = std::nullopt);
  std::vector<HeldLaunch> HeldLaunches() const;
  template <typename Entry>
  void Send(const Entry& entry, const CommandId& about = {});

  // Constant after construction.
  const SupervisorLinkOptions options_;
  AgentJournal& journal_;
  CommandExecutor& executor_;

  AgentRecord record_;  // as the journal has it
  EntrySender sender_;
  std::optional<std::string> usage_;  // not sent yet
  uint64_t last_stream_ = 0;
  std::map<StreamId, FrameStream> streams_;  // those of use; at most one is attached
  std::map<StreamId, std::string> replies_;  // to `attach`, to be sent first
  std::optional<StreamId> attached_;
  absl::Time ending_since_ = absl::InfiniteFuture();
  absl::Time kill_at_ = absl::InfiniteFuture();  // from then on
  bool killed_ = false;                          // all tasks, because the grace is over
  bool stopped_ = false;
};

}  // namespace muster
