// An agent's journal in the memory of its keeper, where it outlives the agent's process. Used by one thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "muster/launch/agent/command_executor.h"
#include "muster/launch/backends/local/task_parent.h"

namespace muster {

// Values by name, of which nullopt drops one. All of a call are kept, or none.
using ValueChanges = std::vector<std::pair<std::string, std::optional<std::string>>>;

class KeptJournal final : public AgentJournal {
 public:
  struct Options {
    std::function<void(const ValueChanges&)> keep;
    std::function<void(absl::Time answered)> answered;  // is told SetAnswered
  };
  explicit KeptJournal(Options options) : options_(std::move(options)) {}

  // Returns what an earlier life has kept; the id, the life and `answered` are the caller's to set.
  static AgentRecord Read(const std::map<std::string, KeptThing>& kept);

  void SetSupervisor(uint64_t number, const std::string& id) override;
  void TakeIn(const OpenCommand& command) override;
  void Close(const CommandId& command) override;
  void SetAnswered(absl::Time answered) override { options_.answered(answered); }

 private:
  const Options options_;
};

}  // namespace muster
