// Where an experiment's model_dir is, when several may say it: the command line, TF_CONFIG, or the variables that a
// cluster's scheduler gives to whatever it runs. By these the same id is the same folder, and an experiment that is
// started again goes on from its checkpoint. docs/experiment.md has the rule. Stateless functions, as thread-safe as
// the FileSystem.
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
  Environment environment;  // an empty variable is the same as none
};

// The first of: `model_dir`, OUTPUT_DIR, root/EXPERIMENT_ID, root/JOB_NAME. It is made if it isn't there, and tried
// whether files can be made in it. IsWrongConfiguration, with the remedy: nobody says a folder; an id that isn't a
// plain name ("a/b", ".."); a folder that can't be made or written to.
absl::StatusOr<std::string> ChooseOutputDir(const OutputDirInputs& inputs, FileSystem& files);

// The same for main, by this process's environment and files: throws Error (exit code 2), which uncaught is one line.
// `root` is the program's --output_root.
std::string OutputDirOf(const TaskConfig& task, const std::string& root = {});

}  // namespace muster
