#include "muster/estimator/output_dir.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/cluster/quoted.h"
#include "muster/train/threads/error.h"

namespace muster {
namespace {

// A folder and its source, for messages.
struct OutputDirSaying {
  std::string path;
  std::string said_by;
};

absl::Status CheckOutputId(const char* variable, const std::string& id) {
  if (!absl::StrContains(id, '/') && id != "." && id != "..") return absl::OkStatus();
  return WrongOptionError(absl::StrCat(variable, ": ", Quoted(id),
                                       " can't name a folder below the output root; accepted: a name without \"/\", "
                                       "or the whole path in OUTPUT_DIR or --model_dir"));
}

std::string OutputRootOf(const OutputDirInputs& inputs) {
  const std::string of_environment = inputs.environment.output_root.value_or("");
  if (!inputs.root.empty()) return inputs.root;
  return of_environment.empty() ? kDefaultOutputRoot : of_environment;
}

absl::StatusOr<OutputDirSaying> FindOutputDir(const OutputDirInputs& inputs) {
  if (!inputs.model_dir.empty()) return OutputDirSaying{inputs.model_dir, "--model_dir or TF_CONFIG's model_dir"};
  const Environment& environment = inputs.environment;
  if (const std::string path = environment.output_dir.value_or(""); !path.empty())
    return OutputDirSaying{path, "OUTPUT_DIR"};
  const std::string root = OutputRootOf(inputs);
  for (const auto& [variable, value] :
       {std::pair("EXPERIMENT_ID", environment.experiment_id), std::pair("JOB_NAME", environment.job_name)}) {
    const std::string id = value.value_or("");
    if (id.empty()) continue;
    RETURN_IF_ERROR(CheckOutputId(variable, id));
    return OutputDirSaying{JoinPath(root, id), absl::StrCat(variable, " below the output root ", root)};
  }
  return WrongOptionError(
      absl::StrCat("no folder for checkpoints and results: none of --model_dir, TF_CONFIG's model_dir, OUTPUT_DIR, "
                   "EXPERIMENT_ID and JOB_NAME says one; give a folder with --model_dir, or set EXPERIMENT_ID for one "
                   "of that name below ",
                   root, " (another root: --output_root)"));
}

absl::Status TryToWrite(const std::string& directory, FileSystem& files) {
  RETURN_IF_ERROR(files.CreateDirectory(directory));
  // The tasks of a cluster try this at the same time.
  const std::string trial = JoinPath(directory, absl::StrCat(".writable.tmp", getpid()));
  ASSIGN_OR_RETURN(const auto file, files.CreateFile(trial));
  RETURN_IF_ERROR(file->Close());
  const absl::Status removed = files.Remove(trial);
  // A task on another host with the same process id has removed it.
  return absl::IsNotFound(removed) ? absl::OkStatus() : removed;
}

}  // namespace

absl::StatusOr<std::string> ChooseOutputDir(const OutputDirInputs& inputs, FileSystem& files) {
  ASSIGN_OR_RETURN(OutputDirSaying saying, FindOutputDir(inputs));
  const absl::Status written = TryToWrite(saying.path, files);
  if (written.ok()) return std::move(saying.path);
  return WrongOptionError(absl::StrCat(saying.path, " (", saying.said_by, ") can't be written to: ", written.message(),
                                       "; make it writable, or name another folder with --model_dir or another root "
                                       "with --output_root"));
}

std::string OutputDirOf(const TaskConfig& task, const std::string& root) {
  HandleUncaughtErrors();
  return ValueOrThrow(ChooseOutputDir({.model_dir = task.model_dir(), .root = root, .environment = ReadEnvironment()},
                                      PosixFileSystem()));
}

}  // namespace muster
