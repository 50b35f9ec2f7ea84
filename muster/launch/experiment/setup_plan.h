// `setup` of an experiment file: what each host does once for a content before the tasks, into a folder of its own that
// stays: CACHE/setup/KEY, where CACHE is ~/.cache/muster or that of XDG_CACHE_HOME there. `muster once` sees to it that
// it is done once. Stateless; SetupKey blocks while it reads files.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/launch/spec/experiment_file.h"

namespace muster {

inline constexpr char kSetupVariable[] = "MUSTER_SETUP_DIR";

// Returns a name for the content: of the commands, and of the files that `setup` names in `folder`, otherwise of the
// whole tree. "" without `setup`. InvalidArgument names a file that can't be read.
absl::StatusOr<std::string> SetupKey(const ExperimentFile& file, const std::string& folder, const std::string& tree);

// Returns the lines of a shell script that set kSetupVariable; "" without a key.
std::string SetupVariableLines(const std::string& key);

// Returns the words that do it, unless it is done. `muster`: the program.
std::vector<std::string> SetupCommand(const ExperimentFile& file, const std::string& key, const std::string& muster);

}  // namespace muster
