// Chooses an experiment's model_dir from several sources: the command line, TF_CONFIG, or the variables that a
// cluster's scheduler gives to its jobs. With these the same id gives the same folder, so that an experiment that is
// started again continues from its checkpoint. docs/learn_runner.md has the rule. Stateless functions, as thread-safe
// as the FileSystem.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "muster/base/files/file_system.h"
#include "muster/cluster/identity/environment.h"
#include "muster/cluster/identity/task_config.h"

namespace muster {

struct OutputDirInputs {
  std::string model_dir;    // TaskConfig::model_dir(): --model_dir's, else TF_CONFIG's; empty: neither
  std::string root;         // --output_root; empty: MUSTER_OUTPUT_ROOT, else kDefaultOutputRoot
  Environment environment;  // an empty variable counts as unset
};

// Returns the first of: `model_dir`, OUTPUT_DIR, root/EXPERIMENT_ID, root/JOB_NAME. Creates it if it is missing, and
// checks that files can be made in it. IsWrongConfiguration, with the remedy: no source gives a folder; an id that
// isn't a plain name ("a/b", ".."); a folder that can't be made or written to.
absl::StatusOr<std::string> ChooseOutputDir(const OutputDirInputs& inputs, FileSystem& files);

// The same for main, with this process's environment and files: throws Error (exit code 2), printed as one line if
// uncaught. `root` is the program's --output_root.
std::string OutputDirOf(const TaskConfig& task, const std::string& root = {});

}  // namespace muster
