// A supervisor's end of the protocol with one agent (docs/agents.md): sends commands and takes in events, each once,
// whatever the streams between them do. A state machine: it is told what has come, what time it is and when there is a
// new stream, and says which bytes to write. It opens nothing, never waits, and calls AgentLinkEvents only from within
// the calls below. Not thread-safe.
//
// An event counts as taken in, and is acknowledged, once its AgentLinkEvents call has returned: by then it must be
// where the next supervisor finds it.
#pragma once

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/launch/agent/agent_limits.h"
#include "muster/launch/agent/agent_probe.h"
#include "muster/launch/agent/entries.h"
#include "muster/launch/agent/entry_sender.h"
#include "muster/launch/agent/frame_stream.h"

namespace muster {

class AgentLinkEvents {
 public:
  virtual ~AgentLinkEvents() = default;

  // Called each time that the agent has answered on a new stream; `launches` are those whose end hasn't come.
  virtual void OnAttached(const std::string& agent_id, uint64_t life, const std::vector<HeldLaunch>& launches) = 0;
  // The agent is heard again (false), or hasn't been heard for AgentLimits::suspect (true).
  virtual void OnSuspect(bool suspect) = 0;

  // The answers to commands, one for each of this supervisor. OnStarted and OnFailed also tell of launches of an
  // earlier supervisor that were in OnAttached; such a one may come again.
  virtual void OnReserved(const CommandId& command, const TaskId& task, const std::vector<std::string>& addresses) = 0;
  virtual void OnStarted(const CommandId& launch, const TaskId& task, int64_t pid) = 0;
  virtual void OnFailed(const CommandId& command, const TaskId& task, const absl::Status& status) = 0;
  virtual void OnStopped(uint64_t strays) = 0;

  // `position`: bytes of this stream of the launch before these. They come without gaps and overlaps, but for
  // OnOutputLost.
  virtual void OnOutput(const CommandId& launch, OutputStream stream, uint64_t position, std::string_view bytes) = 0;
  // `bytes` of the stream died with an agent.
  virtual void OnOutputLost(const CommandId& launch, OutputStream stream, uint64_t position, uint64_t bytes) = 0;
  // After all output of the launch. `unsure`: up to kMaxOutputBytes may be missing from its end.
  virtual void OnExit(const CommandId& launch, const TaskId& task, const ExitStatus& status, bool unsure) = 0;
  virtual void OnUsage(const UsageEntry& usage) = 0;
  virtual void OnNote(const std::string& line) = 0;
};

// How far an earlier supervisor of the run has written down what came from an agent.
struct AgentProgress {
  std::string agent_id;  // empty: it was never heard
  uint64_t life = 0;
  uint64_t seen = 0;                        // may be too low
  std::map<CommandId, OutputEnds> outputs;  // of launches whose end isn't written down; must be exact
  std::set<CommandId> ended;                // launches whose end is
};

struct AgentLinkOptions {
  std::string job;
  uint64_t supervisor = 1;
  std::string supervisor_id;  // kIdBytes
  AgentProgress progress;
  AgentLimits limits;
  const AgentProbe* probe = nullptr;
};

class AgentLink {
 public:
  // Borrows `events`. `now`: from here on counts how long the agent isn't heard. The number counts as just read.
  AgentLink(AgentLinkOptions options, AgentLinkEvents& events, absl::Time now);

  // A stream has passed its handshake; an older one is forgotten.
  void OnStream(absl::Time now, const std::optional<FrameMac>& mac = std::nullopt);
  void OnStreamEnd();
  // After an error the stream must be closed; it is forgotten already.
  [[nodiscard]] absl::Status OnBytes(absl::Time now, ByteSpan bytes);
  // Returns a frame to write, "" if there is none now. Call it when the stream has room, so that a frame is made when
  // it goes, and until it returns "".
  std::string NextFrame(absl::Time now);

  // The run's number file has been read and still has this supervisor's number. Must come every 500 ms or so: without
  // it no frame is written and none is taken in: the stream is forgotten (has_stream), as a successor may have begun.
  void OnNumberRead(absl::Time now) {
    number_read_ = now;
    awaits_number_ = false;
  }

  // Must be called at deadline(); may be called at any time.
  void OnTime(absl::Time now);
  absl::Time deadline() const;

  // While true, output is kept here and not acknowledged, until the agent reads no more. Other events are told at once;
  // a launch's end brings its output along. An error as from OnBytes.
  [[nodiscard]] absl::Status PauseOutput(bool paused);

  // InvalidArgument: no agent would accept that. ResourceExhausted: not now, see may_send. FailedPrecondition: the
  // agent is lost or has refused.
  absl::StatusOr<CommandId> Reserve(const ReserveEntry& reserve);
  absl::StatusOr<CommandId> Launch(const LaunchEntry& launch);
  absl::StatusOr<CommandId> End(const CommandId& launch, EndMode mode);
  absl::StatusOr<CommandId> WriteHosts(const std::string& file);
  // Up to kMaxInputBytes; none: the end of the launch's input.
  absl::StatusOr<CommandId> Input(const CommandId& launch, const std::string& bytes);
  absl::StatusOr<CommandId> Stop();
  // Returns whether there is room for commands. While there is none, hold them back and ask again after OnBytes.
  bool may_send() const;

  bool attached() const { return attached_; }
  bool suspect() const { return suspect_; }
  // The agent's grace has run out, so that none of its tasks runs. It stays so.
  bool lost() const { return lost_; }
  // Returns whether another agent has answered in the place of this one, which it knows nothing of. It stays so.
  bool replaced() const { return replaced_; }
  // Why the agent has refused this supervisor. After kNewerSupervisor it must end and leave everything alone.
  const std::optional<RefusedEntry>& refused() const { return refused_; }
  // Returns whether there is a stream that is still of use.
  bool has_stream() const { return stream_ != nullptr; }
  // How far this supervisor has come; see AgentLinkOptions::progress.
  const AgentProgress& progress() const { return progress_; }

 private:
  struct Pending {
    EntryKind kind = EntryKind::kNone;
    TaskId task;
  };

  // An event that has come while output is paused.
  struct Kept {
    CommandId launch;  // of output
    std::string body;  // likewise, while it isn't taken in
    bool taken = false;
  };

  bool Has(PlantedAgentBug bug) const { return options_.probe != nullptr && options_.probe->Has(bug); }
  template <typename Entry>
  absl::StatusOr<CommandId> Send(const Entry& entry, const TaskId& task, bool answered);
  absl::Status WhyNoRoom() const;
  absl::Status TakeFrame(absl::Time now, AgentFrame& frame);
  absl::Status TakeAttached(const AttachedEntry& attached);
  absl::Status TakeNumbered(AgentFrame& frame);
  // As TakeNumbered, while output is paused.
  absl::Status TakeOrKeep(AgentFrame& frame);
  size_t MostKept() const;  // bytes
  // Takes in the output that was kept while it was paused: a launch's, or all.
  absl::Status TakeKept(const std::optional<CommandId>& launch);
  void CountTaken();
  absl::Status TakeEvent(EntryKind kind, const std::string& body);
  // Returns the command that is answered; nullopt if it isn't this supervisor's or has an answer already.
  std::optional<Pending> Answered(const CommandId& command, std::initializer_list<EntryKind> kinds);
  absl::Status Take(const ReservedEntry& reserved);
  absl::Status Take(const StartedEntry& started);
  absl::Status Take(const FailedEntry& failed);
  absl::Status Take(const StoppedEntry& stopped);
  absl::Status Take(const OutputEntry& output);
  absl::Status Take(const ExitedEntry& exited);
  absl::Status Take(const UsageEntry& usage);
  absl::Status Take(const NoteEntry& note);
  // Tells of output up to `position` that hasn't come.
  void SkipTo(const CommandId& launch, OutputStream stream, uint64_t position);
  bool NumberIsOld(absl::Time now) const;
  void Heard(absl::Time now);

  // Constant after construction.
  const AgentLinkOptions options_;
  AgentLinkEvents& events_;

  EntrySender sender_;
  std::map<uint64_t, Pending> pending_;  // commands without an answer, by number
  AgentProgress progress_;
  bool knows_life_ = false;  // of progress_, by itself and not from an earlier supervisor
  std::unique_ptr<FrameStream> stream_;
  bool attach_sent_ = false;  // on this stream
  bool attached_ = false;     // likewise
  bool acknowledge_ = false;  // at once, since the agent waits for it
  std::optional<RefusedEntry> refused_;
  absl::Time heard_;
  absl::Time number_read_;
  bool awaits_number_ = false;  // to write the next frame
  bool suspect_ = false;
  bool lost_ = false;
  bool replaced_ = false;
  bool stopping_ = false;
  bool paused_ = false;
  std::deque<Kept> kept_;  // entries after progress_.seen
  size_t kept_bytes_ = 0;
};

}  // namespace muster
