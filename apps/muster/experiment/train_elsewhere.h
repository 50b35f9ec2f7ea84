// `muster train` whose supervisor runs on another host: the project goes there, and this muster's own `train` starts
// the experiment there, in that host's home. From then on this machine isn't needed. Blocking; used by one thread.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/muster/experiment/submit_experiment.h"

namespace muster {

struct TrainElsewhere {
  std::string host;                   // as ssh knows it
  std::string ssh_config;             // a file for `ssh -F`; empty: the user's own
  std::string folder;                 // of the project
  std::vector<std::string> left_out;  // of it, as in ListProject
  std::vector<std::string> words;     // of `muster train` there, beside what this adds
  bool dry_run = false;
  ShowFlags show;
};

// Shows the experiment until it has ended or Ctrl-C is pressed, unless it is to be detached or only dry. Returns the
// exit code: as Submit, or 138 if the connection has broken.
absl::StatusOr<int> TrainOnOtherHost(const TrainElsewhere& train);

// Returns the value of a flag for a host file, for a command that runs in a copy of `folder`: relative to it.
// InvalidArgument: it isn't in there, so the other host wouldn't have it.
absl::StatusOr<std::string> PathInFolder(const std::string& flag, const std::string& path, const std::string& folder);

}  // namespace muster
