// The file that `muster init` writes: what an experiment of that framework usually says, with everything else behind
// comment signs. Pure, thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "muster/launch/spec/experiment_file.h"

namespace muster {

// Valid as it is, and with any of the lines that begin with '#' and no blank behind it taken in.
std::string ExperimentFileTemplate(Framework framework, const std::string& project);

// A project's name for the folder of that name: what a name may not have becomes '-'.
std::string ProjectNameOf(std::string_view folder);

// "tensorflow".
std::string_view Name(Framework framework);

}  // namespace muster
