// Finds the experiment file of a command: the one it names, or the one in the working directory.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "muster/launch/spec/experiment_file.h"

namespace muster {

struct FolderFile {
  std::string folder;  // absolute
  std::string name;    // in that folder: "muster.yml"
  std::string text;    // unchanged
  ExperimentFile file;
};

// `path`: a file, a folder with one, or empty for the working directory. NotFound naming what is accepted; errors of
// ParseExperimentFile.
absl::StatusOr<FolderFile> ReadExperimentFile(const std::string& path);

// Returns the project of commands without an id: that of the working directory's file; empty without a file. Returns
// errors of a file that is invalid.
absl::StatusOr<std::string> ProjectHere();
// Returns "; those that gpu1 supervises are there: muster ls gpu1:" if the file in the working directory names
// a machine for its supervisors, otherwise "".
std::string SupervisedElsewhereText();

}  // namespace muster
