// Starts agents that connect to their supervisor by themselves, on hosts that the run has: by srun, or by a driver of
// another system. It knows nothing of connections; a ListeningEngine takes them. Used by the loop's thread.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "muster/launch/agent/rendezvous.h"

namespace muster {

// What becomes of the starts, told from the loop. Only the newest start on a host counts: of older ones nothing is
// told.
class AgentStarterEvents {
 public:
  virtual ~AgentStarterEvents() = default;
  // The host's agent, or what runs it there, has said a line.
  virtual void OnSaid(const std::string& host, const std::string& line) = 0;
  // What starts agents on these hosts has said what is wrong for all of them.
  virtual void OnSaidOfAll(const std::vector<std::string>& hosts, const std::string& line) = 0;
  // The starts on these hosts haven't begun yet, and go on by themselves.
  virtual void OnWaits(const std::vector<std::string>& hosts, const std::string& line) = 0;
  // The host's agent has ended, or couldn't be started. May come several times.
  virtual void OnEnded(const std::string& host, const std::string& how) = 0;
};

// How agents find their supervisor.
struct Meeting {
  std::string file;  // has the rendezvous, for agents on hosts that see it
  Rendezvous rendezvous;
};

class AgentStarter {
 public:
  // Ends the agents that haven't ended, which the supervisor must have told to; blocks for some seconds.
  virtual ~AgentStarter() = default;
  // Must be called first, once. Starts nothing; agents of an earlier supervisor learn of this one. Borrows `events`,
  // which must outlive the starter.
  [[nodiscard]] virtual absl::Status Begin(const Meeting& meeting, AgentStarterEvents& events) = 0;
  // Starts an agent on each of these hosts, all of the run.
  [[nodiscard]] virtual absl::Status StartAll(const std::vector<std::string>& hosts) = 0;
  // Starts another one on a host whose agent has ended, or should have come and hasn't. Aborted: there won't be any.
  [[nodiscard]] virtual absl::Status StartAgain(const std::string& host) = 0;
  // Ends the host's newest start, if that doesn't end those of others.
  virtual void EndStart(const std::string& host) = 0;
  // The host's agent has connected.
  virtual void NoteArrival(const std::string& /*host*/) {}
  // Nothing is to be told of the host's starts so far.
  virtual void Forget(const std::string& host) = 0;
  // Returns why a host has no agent, in a sentence that says what to do, from what was said there last. As the errors
  // of EngineEvents::OnNoStream.
  virtual absl::Status Explain(const std::string& host, const std::string& said) const = 0;
  // Returns when OnTime has something to do, whatever comes from outside.
  virtual absl::Time deadline() const { return absl::InfiniteFuture(); }
  // Must be called after each round of the loop.
  virtual void OnTime() = 0;
};

// What an agent says that finds no supervisor.
inline constexpr char kCannotReachSupervisor[] = "can't reach";
inline constexpr char kCannotReadRendezvous[] = "cannot read ";

}  // namespace muster
