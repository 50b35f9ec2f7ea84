// The keys of an experiment file as a table: what checks a file, what `muster schema` prints and what the page
// docs/experiment_file.md lists. Constant, thread-safe.
#pragma once

#include <string>

namespace muster {

// JSON schema, draft 2020-12, indented.
std::string ExperimentFileJsonSchema();

}  // namespace muster
