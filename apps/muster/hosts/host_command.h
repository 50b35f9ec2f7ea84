// Runs one of this muster's own commands on a host that ssh reaches. Blocking; the process must have no other thread.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/launch/backends/backend.h"

namespace muster {

struct HostAnswer {
  int exit_code = 0;
  std::string stdout_text;  // up to 1 MiB of each
  std::string stderr_text;
};

struct HostCommandOptions {
  HostPlan plan;  // with the host
  std::string host;
  std::vector<std::string> words;                                     // of the command; the first is "muster"
  std::vector<std::pair<std::string, std::string>> environment = {};  // beside the host's own
  // The command runs in a copy of this folder of this machine, or in the folder itself if the host sees it. The copy
  // goes when the command has ended. Empty: in no folder in particular.
  std::string folder = "";
  std::vector<std::string> left_out = {};                      // of it, as in ListProject
  std::function<void(const std::string& line)> say = nullptr;  // takes lines for the user; empty: nobody does
};

// Unavailable: the host can't be used.
absl::StatusOr<HostAnswer> RunOnHost(const HostCommandOptions& options);

}  // namespace muster
