// What an experiment needs before it runs: the framework's version in a virtual environment, and what `install` does to
// the code; each once a content, shared by all experiments with the same. The build task 4.build runs the commands
// planned here. Stateless but for the folders; thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/launch/registry/home.h"
#include "muster/launch/registry/registry.h"
#include "muster/launch/spec/experiment_file.h"

namespace muster {

struct BuildPlan {
  bool needed = false;                // otherwise everything is there, or there is nothing to do
  std::vector<std::string> commands;  // for one shell, in order; the first that fails ends it
  std::string directory;              // where they run: a copy of the tree, or empty
  std::string environment_folder;     // virtual environment to be on the tasks' PATH; empty: none
  std::string code;                   // what runs copy as their working folder: the tree, or what `install` made of it
  std::string done_mark;              // file that MarkBuilt makes; a build without it is begun anew
};

// `tree`: hash. The key of a build: tree, install, framework, version, python. Only what `install` says depends on the
// code.
absl::StatusOr<BuildPlan> PlanBuild(const ExperimentFile& file, const std::string& tree, const TrainOptions& options,
                                    const Home& home);
// Makes the folders for a build that is needed: a fresh copy of the tree. Held by a lock file so that two experiments
// don't build the same at once: Unavailable while another does (try again later).
[[nodiscard]] absl::Status PrepareBuild(const BuildPlan& plan, const Home& home, const std::string& tree);
[[nodiscard]] absl::Status MarkBuilt(const BuildPlan& plan);

}  // namespace muster
