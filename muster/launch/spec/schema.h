// Prints the table of the experiment file's keys, which checks files and fills docs/experiment_file.md, as JSON schema.
// Constant, thread-safe.
#pragma once

#include <string>

namespace muster {

// Returns JSON schema, draft 2020-12, indented.
std::string ExperimentFileJsonSchema();

}  // namespace muster
