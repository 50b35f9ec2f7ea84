// Builds what an experiment needs before it runs: a virtual environment with the framework's version, and what
// `install` does to the code. Each is stored by content, once, and shared by all experiments with the same. The build
// task 4.build runs the commands planned here. docs/experiments/code.md. Stateless but for the folders;
// thread-safe.
//
// The order of calls: PlanBuild, PrepareBuild, run the commands, MarkBuilt. If PrepareBuild returns Unavailable,
// another process is building or has built the same: wait a little and plan again.
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
  bool needed = false;                // false: everything exists already, or nothing has to be done
  std::vector<std::string> commands;  // for one shell, in order; stops at the first that fails
  std::string directory;              // working directory: a copy of the tree, or empty
  std::string environment_folder;     // virtual environment for the tasks' PATH; empty: none
  std::string code;                   // runs copy it as their working folder: the tree, or what `install` made of it
  std::string done_mark;              // file that MarkBuilt makes; a build without it is restarted
  std::vector<std::string> folders;   // folders that PrepareBuild locks and empties
};

// A file of this name marks folders of builds and environments as complete.
inline constexpr char kBuildDoneName[] = ".muster-done";

// Returns whether the tasks run in a virtual environment that muster makes.
bool HasEnvironment(const ExperimentFile& file, const SubmitOptions& options);

// Plans the build. `tree`: hash. A build is identified by tree, install, framework and version; an environment by
// framework and version. What exists already is safe from `muster gc` for an hour from now. InvalidArgument: an invalid
// version.
absl::StatusOr<BuildPlan> PlanBuild(const ExperimentFile& file, const std::string& tree, const SubmitOptions& options,
                                    const Home& home);
// Makes the folders for a build that is needed, with a fresh copy of the tree. The returned locks are the right to
// build, until they or this process end. Unavailable: another process has it, or has built it since it was planned.
absl::StatusOr<std::vector<FolderLock>> PrepareBuild(const BuildPlan& plan, const Home& home, const std::string& tree);
[[nodiscard]] absl::Status MarkBuilt(const BuildPlan& plan);

// Returns the folders below Home::builds and Home::environments that an experiment of this file uses or would make.
// Changes nothing.
absl::StatusOr<std::vector<std::string>> BuildFoldersOf(const ExperimentFile& file, const std::string& tree,
                                                        const SubmitOptions& options, const Home& home);

}  // namespace muster
