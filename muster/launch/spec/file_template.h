// The file that `muster init` writes: the usual keys for an experiment of that framework, all others commented out.
// Pure, thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "muster/launch/spec/experiment_file.h"

namespace muster {

// Returns a file that is valid as it is, and with any of the lines uncommented that begin with '#' without a blank.
std::string ExperimentFileTemplate(Framework framework, const std::string& project);

// Returns a project name for a folder's name: characters that aren't allowed become '-'.
std::string ProjectNameOf(std::string_view folder);

// Returns "tensorflow".
std::string_view Name(Framework framework);

}  // namespace muster
