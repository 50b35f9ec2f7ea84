// A step of agents: an srun that runs, the lines that it writes, and its end. Used by the loop's thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/launch/engines/slurm/step_output.h"
#include "muster/launch/system/fd_loop.h"
#include "muster/launch/system/piped_program.h"

namespace muster {

struct AgentStepOptions {
  std::vector<std::string> words;        // of srun
  std::vector<std::string> environment;  // "NAME=VALUE"
  std::vector<std::string> hosts;        // in the order of the step's tasks
  std::function<void(const StepLine& line)> said;
  // Called once, from the loop, after the last line: "exited with 1". The step must not be destroyed in it.
  std::function<void(const std::string& how)> ended;
};

class AgentStep {
 public:
  // Borrows `loop`, which must outlive it. NotFound: there is no srun in the PATH, with the way out. Other errors are
  // those of PipedProgram::Start.
  static absl::StatusOr<std::unique_ptr<AgentStep>> Start(AgentStepOptions options, FdLoop& loop);
  // Kills srun if it still runs; what the step has on the nodes may go on then.
  ~AgentStep();
  AgentStep(const AgentStep&) = delete;
  AgentStep& operator=(const AgentStep&) = delete;

  const std::vector<std::string>& words() const { return options_.words; }
  const std::vector<std::string>& hosts() const { return options_.hosts; }
  bool has_ended() const { return has_ended_; }
  // Has Slurm end all that the step has, by SIGTERM to srun; with `at_once`, which doesn't wait for nodes, by SIGQUIT.
  void End(bool at_once);
  // Blocks until srun has ended, at most until this time of RealClock. Returns whether it has.
  bool AwaitEnd(absl::Time until) const;

 private:
  struct Stream {
    int fd;
    std::string line;  // unfinished
  };

  AgentStep(AgentStepOptions options, PipedProgram srun, FdLoop& loop);
  void Read(Stream& stream);
  void OnEnd();

  const AgentStepOptions options_;
  FdLoop& loop_;
  PipedProgram srun_;
  Stream out_, err_;
  bool has_ended_ = false;
};

}  // namespace muster
