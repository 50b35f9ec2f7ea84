// Says what the death of a worker costs if there is no ps (AllReduce): all workers are started again from the newest
// checkpoint, and the steps since then are lost. Said while a process still knows at which step training was.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "muster/base/files/file_system.h"

namespace muster {

// Returns `why`, an Unavailable, extended by how many of `global_step` steps are in no checkpoint of `checkpoint_dir`
// (empty: there is none), and from where training will resume. The checkpoints are the chief's: another task that sees
// none there, or has no checkpoint_dir, doesn't know the number.
[[nodiscard]] absl::Status NamingLostSteps(const absl::Status& why, FileSystem& files,
                                           const std::string& checkpoint_dir, int64_t global_step, bool is_chief);

}  // namespace muster
