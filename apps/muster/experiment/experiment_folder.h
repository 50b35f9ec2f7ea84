// The experiment file that a command is about: the one it names, or the one of the working directory.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "muster/launch/spec/experiment_file.h"

namespace muster {

struct FolderFile {
  std::string folder;  // absolute
  std::string name;    // in it: "muster.yml"
  std::string text;    // as it is
  ExperimentFile file;
};

// `path`: a file, a folder with one, or empty for the working directory. NotFound naming what is accepted; errors of
// ParseExperimentFile.
absl::StatusOr<FolderFile> ReadExperimentFile(const std::string& path);

// The project that commands without an id are about: that of the working directory's file; empty if there is none.
// Errors of a file that is there and wrong.
absl::StatusOr<std::string> ProjectHere();

}  // namespace muster
