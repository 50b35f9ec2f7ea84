// Takes over what a muster before format 4 knew of all experiments: it kept that in MUSTER_HOME/registry.db alone.
#pragma once

#include "absl/status/status.h"
#include "muster/launch/registry/home.h"
#include "muster/launch/registry/sqlite.h"

namespace muster {

// Writes the files of all its experiments, and renames it to registry.db.old. Does nothing if there is none. Another
// process that does the same waits for `index`. FailedPrecondition: an experiment runs under the older muster; it isn't
// a registry; this user may only read it. What is cut off is done anew by the next command.
[[nodiscard]] absl::Status TakeOverFormerRegistry(SqliteDatabase& index, const Home& home);

}  // namespace muster
