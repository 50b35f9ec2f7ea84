// Starts agents on the nodes of a job of Slurm: one srun for all of them, or for those with as many GPUs, and a step of
// its own for a node whose agent has ended (docs/slurm_engine.md). Used by the loop's thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/launch/engines/listening/agent_starter.h"
#include "muster/launch/engines/slurm/agent_step.h"
#include "muster/launch/engines/slurm/step_command.h"
#include "muster/launch/system/fd_loop.h"

namespace muster {

// How long a starter that is destroyed waits for the end of its agents.
struct StepPatience {
  absl::Duration by_themselves = absl::Seconds(2);
  absl::Duration asked = absl::Seconds(5);   // to end gently
  absl::Duration killed = absl::Seconds(3);  // by Slurm
};

class SlurmSteps final : public AgentStarter {
 public:
  // `program.rendezvous` is left open. `environment`: of srun before it is scrubbed, "NAME=VALUE". Borrows `loop` and
  // `clock`, which must outlive it.
  SlurmSteps(AgentProgram program, std::vector<std::string> environment, FdLoop& loop, const Clock& clock,
             StepPatience patience = {});
  // Waits until the agents have ended; asks those that haven't after 2 s, and has Slurm kill them 5 s later, each once.
  ~SlurmSteps() override;

  absl::Status Begin(const Meeting& meeting, AgentStarterEvents& events) override;
  // NotFound: there is no srun.
  absl::Status StartAll(const std::vector<std::string>& hosts) override;
  absl::Status StartAgain(const std::string& host) override;
  void EndStart(const std::string& host) override;
  void Forget(const std::string& host) override { newest_.erase(host); }
  absl::Status Explain(const std::string& host, const std::string& said) const override;
  absl::Time deadline() const override;
  void OnTime() override;

 private:
  // What is known of a step besides what its srun does.
  struct Course {
    int tries = 1;           // to start it, with this one
    std::string unanswered;  // what srun said of a controller that doesn't answer
    absl::Time again_at = absl::InfiniteFuture();
  };

  // Blocks until all steps have ended, and forgets those that have.
  void AwaitEnds(absl::Duration patience);
  absl::Status StartStep(std::vector<std::string> words, const std::vector<std::string>& hosts, int tries = 1);
  // Returns whether the step is started once more, later: nobody has answered, and no host has another one.
  bool TriesAgain(const AgentStep* step);
  void StartAgainWhatIsDue();
  // Returns the hosts of which this step is the newest.
  std::vector<std::string> HostsOf(const AgentStep* step) const;
  void OnLine(const AgentStep* step, const StepLine& line);
  void OnStepEnd(const AgentStep* step, const std::string& how);

  const std::vector<std::string> environment_;
  FdLoop& loop_;
  const Clock& clock_;
  const StepPatience patience_;

  AgentProgram program_;
  AgentStarterEvents* events_ = nullptr;      // from Begin on
  std::map<std::string, int> gpus_;           // of each node; empty: a step gets them without naming them
  std::map<std::string, AgentStep*> newest_;  // by host
  std::vector<std::unique_ptr<AgentStep>> steps_;
  std::map<const AgentStep*, Course> courses_;
};

}  // namespace muster
