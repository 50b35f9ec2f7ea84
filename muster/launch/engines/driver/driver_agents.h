// Starts agents by the driver of the job in which this process is: a program that another system runs, as Ray, and that
// listens on a Unix socket for what a supervisor wants of that system (driver_lines.h). Used by the loop's thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/launch/engines/driver/driver_lines.h"
#include "muster/launch/engines/listening/agent_starter.h"
#include "muster/launch/system/fd_loop.h"
#include "muster/transport/io/socket.h"

namespace muster {

// How long a starter that is destroyed waits for the end of its agents.
struct EndPatience {
  absl::Duration by_themselves = absl::Seconds(2);
  absl::Duration asked = absl::Seconds(5);   // to end gently
  absl::Duration killed = absl::Seconds(3);  // by the driver
};

struct DriverAgentsOptions {
  std::string socket;                        // the driver's: a path, or "@NAME" of an abstract one
  std::string job;                           // of the agents: letters, digits and '-'
  absl::Duration grace = absl::Seconds(30);  // of the agents, in whole seconds
  EndPatience patience = {};
};

class DriverAgents final : public AgentStarter {
 public:
  // Borrows `loop`, which must outlive it.
  DriverAgents(DriverAgentsOptions options, FdLoop& loop);
  // Waits until the agents have ended; asks those that haven't in time, then has the driver kill them, see EndPatience.
  ~DriverAgents() override;

  // Unavailable: there is no driver.
  absl::Status Begin(const Meeting& meeting, AgentStarterEvents& events) override;
  absl::Status StartAll(const std::vector<std::string>& hosts) override;
  absl::Status StartAgain(const std::string& host) override;
  void EndStart(const std::string& host) override;
  void Forget(const std::string& host) override { newest_.erase(host); }
  absl::Status Explain(const std::string& host, const std::string& said) const override;
  void OnTime() override {}

 private:
  // Returns whether no agent is left; none is once the driver is gone.
  bool AwaitEnds(absl::Duration patience);
  void Send(const std::string& line);
  void OnReady(short found);
  void Write();
  // Returns whether more may come.
  bool Read();
  void OnNews(const DriverNews& news);
  // Nothing can be started any more, and what runs is ending.
  void OnGone(const std::string& why);

  const DriverAgentsOptions options_;
  FdLoop& loop_;

  AgentStarterEvents* events_ = nullptr;  // from Begin on
  std::string rendezvous_;                // the text
  Socket socket_;                         // invalid: the driver is gone
  std::string gone_;                      // why
  std::string over_;                      // why the driver can start no agent any more; empty: it may
  std::string unread_, unwritten_;
  uint64_t starts_ = 0;
  std::map<std::string, uint64_t> newest_;  // by host
  std::set<uint64_t> running_;              // starts whose end hasn't been told
};

// Has the driver at that socket kill all agents that it has started, and waits for that, at most for `patience`.
// Returns whether it has.
bool EndAllAgents(const std::string& socket, absl::Duration patience);

}  // namespace muster
