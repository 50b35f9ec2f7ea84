// The engine for the nodes of a job of Slurm: one srun starts an agent on each, and the agents connect back over TCP to
// this process, which is in the job or has made it (docs/slurm_engine.md). A node whose agent has ended gets another
// one by a step of its own. Used by the loop's thread.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/launch/agent/agent_listener.h"
#include "muster/launch/agent/rendezvous.h"
#include "muster/launch/engines/engine.h"
#include "muster/launch/engines/slurm/agent_step.h"
#include "muster/launch/system/fd_loop.h"

namespace muster {

struct SlurmEngineOptions {
  std::vector<std::string> hosts;            // all nodes of the job, in Slurm's order
  std::vector<std::string> environment;      // of srun before it is scrubbed, "NAME=VALUE"
  std::string job;                           // of the agents: letters, digits and '-'
  absl::Duration grace = absl::Seconds(30);  // of the agents, in whole seconds
  std::string muster;                        // the file, as the nodes see it
  std::string folder;                        // for the rendezvous: one that the nodes see; it exists
  bool goes_on = false;                      // the agents are there: those of the supervisor before
  bool in_job = false;                       // HostPlan::in_job
  std::optional<PortRange> ports;            // HostPlan::ports, for the supervisor's own
  std::function<void(const std::string& line)> note = [](const std::string&) {};  // takes a line for the user
};

class SlurmEngine final : public Engine {
 public:
  // Borrows `loop` and `clock`, which must outlive it.
  SlurmEngine(SlurmEngineOptions options, FdLoop& loop, const Clock& clock);
  // Waits until the agents have ended, which the supervisor must have told them; asks those that haven't after 2 s, and
  // has Slurm kill them 5 s later.
  ~SlurmEngine() override;

  // NotFound: there is no srun, or the file of muster isn't there any more. The errors of writing to the folder.
  absl::Status Start(EngineEvents& events) override;
  void Connect(const std::string& host) override;
  std::string LastWords(const std::string& host) const override { return nodes_.at(host).said; }
  absl::Time deadline() const override;
  void OnTime() override;

 private:
  // An agent starts within this: prologues of a site may take their time.
  static constexpr absl::Duration kStartPatience = absl::Minutes(2);
  // One that has been heard comes again within this, if it can.
  static constexpr absl::Duration kReturnPatience = absl::Seconds(5);
  // The agents of a supervisor that was killed have found the next one within this.
  static constexpr absl::Duration kFindPatience = absl::Seconds(8);
  // What an agent said last comes at most so much after its end.
  static constexpr absl::Duration kLastWords = absl::Seconds(1);

  struct Node {
    AgentStep* step = nullptr;  // the newest one for this node; null: none that could still bring an agent
    bool came = false;          // its agent has connected
    bool wanted = false;
    absl::Time found_by = absl::InfinitePast();    // without a step: an agent that is there already
    absl::Time ended_at = absl::InfiniteFuture();  // its agent
    absl::Time patience_ends = absl::InfiniteFuture();
    std::string said;
  };

  absl::Status StartOnAllNodes();
  absl::Status StartStep(std::vector<std::string> words, const std::vector<std::string>& hosts);
  void StartOneNode(const std::string& host, Node& node);
  void OnLine(const AgentStep* step, const StepLine& line);
  void OnStepEnd(const AgentStep* step, const std::string& how);
  void OnAgentEnd(Node& node, const std::string& how);
  void OnArrival(const std::string& host, Socket socket, const std::string& rest);
  // When something must be done for a node that is wanted.
  static absl::Time DueOf(const Node& node);
  void Care(const std::string& host, Node& node);
  void Fail(const std::string& host, Node& node, const absl::Status& why);
  absl::Status Explain(const std::string& host, const Node& node) const;
  std::string RendezvousFile() const;

  const SlurmEngineOptions options_;
  FdLoop& loop_;
  const Clock& clock_;

  EngineEvents* events_ = nullptr;  // from Start on
  Rendezvous rendezvous_;
  std::unique_ptr<AgentListener> listener_;
  std::map<std::string, int> gpus_;  // of each node; empty: a step gets them without naming them
  std::map<std::string, Node> nodes_;
  std::deque<std::string> asked_;  // since the last OnTime
  std::vector<std::unique_ptr<AgentStep>> steps_;
};

}  // namespace muster
