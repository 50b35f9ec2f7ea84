// What srun writes about the agents that it has started: lines of theirs, behind the number of the task (--label), and
// its own about tasks and nodes. Only errors come this way, since an agent speaks over TCP. Pure, thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster {

struct StepLine {
  std::vector<std::string> hosts;  // whom it is about; none: the step as a whole
  std::string text;                // without what says that, on one line
  bool ended = false;              // their agents have ended

  bool operator==(const StepLine&) const = default;
};

// `hosts`: those of the step, in the order of its tasks. A host that isn't among them makes a line that is about none.
StepLine ReadStepLine(std::string_view line, const std::vector<std::string>& hosts);

// Returns whether srun has said that there is no such job, or not any more.
bool SaysThatJobHasEnded(std::string_view text);

// Returns whether srun has given up before it started anything, as Slurm's controller didn't answer: it is busy, or is
// started again.
bool SaysThatNobodyAnswers(std::string_view text);

}  // namespace muster
