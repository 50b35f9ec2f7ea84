// Commands of a user's own that give three simulated hosts, and get to each by its namespaces, for the benchmark of
// what an experiment there takes beyond these commands themselves. Needs root. Used by one thread.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/support/on_engine.h"
#include "tests/process/testing/beds/host_commands.h"
#include "tests/process/testing/simulated_hosts.h"

namespace muster::bench {

inline constexpr int kHostsOfCommand = 3;

class OnCommand final : public OnEngine {
 public:
  // `greeting`: what each task prints.
  explicit OnCommand(const std::string& greeting);
  OnCommand(const OnCommand&) = delete;
  OnCommand& operator=(const OnCommand&) = delete;

  int tasks() const override { return kHostsOfCommand; }
  // From before the fork of `acquire` until the programs that `start` has run on all hosts at once have ended.
  absl::StatusOr<double> OfItself() const override;
  std::vector<std::string> Train(const std::string& muster) const override;
  EnvironmentChanges environment() const override { return {{"MUSTER_HOME", hosts_.shared() + "/home"}}; }

 private:
  // Runs a script on h0. Internal: it has failed.
  absl::Status Run(const std::string& script) const;

  const SimulatedHosts hosts_;
  const HostCommands commands_;
  const std::string project_;
};

}  // namespace muster::bench
