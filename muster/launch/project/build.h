// What an experiment needs before it runs: the framework's version in a virtual environment, and what `install` does to
// the code; each once a content, shared by all experiments with the same. The build task 4.build runs the commands
// planned here. docs/experiments/code.md. Stateless but for the folders; thread-safe.
//
// Whoever builds plans, prepares, runs the commands and marks. PrepareBuild being Unavailable means: wait a little and
// plan again, as somebody else is building or has built the same.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/launch/project/folder_lock.h"
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
  std::vector<std::string> folders;   // that PrepareBuild takes and empties
};

// In folders of builds and environments: says that what is there is whole.
inline constexpr char kBuildDoneName[] = ".muster-done";

// `tree`: hash. A build is known by tree, install, framework and version; an environment by framework and version. What
// is there is safe from `muster gc` for an hour from now. InvalidArgument: a version that is none.
absl::StatusOr<BuildPlan> PlanBuild(const ExperimentFile& file, const std::string& tree, const SubmitOptions& options,
                                    const Home& home);
// Makes the folders for a build that is needed: a fresh copy of the tree. The right to build lasts as long as what is
// returned, or this process. Unavailable: another has it, or it has been built since it was planned.
absl::StatusOr<std::vector<FolderLock>> PrepareBuild(const BuildPlan& plan, const Home& home, const std::string& tree);
[[nodiscard]] absl::Status MarkBuilt(const BuildPlan& plan);

// The folders below Home::builds and Home::environments that an experiment of this file uses or would make. Touches
// nothing.
absl::StatusOr<std::vector<std::string>> BuildFoldersOf(const ExperimentFile& file, const std::string& tree,
                                                        const SubmitOptions& options, const Home& home);

}  // namespace muster
