// What the death of a worker costs where there is no ps (AllReduce): all workers are started again from the newest
// checkpoint, and what came after it is lost. Says so while somebody still knows at which step training was.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "muster/base/files/file_system.h"

namespace muster {

// `why`, an Unavailable, with how many of `global_step` steps no checkpoint of `checkpoint_dir` has (empty: there is
// none), and where training will go on. The checkpoints are the chief's: another task that sees none there, or has no
// checkpoint_dir, doesn't know how many there are.
[[nodiscard]] absl::Status NamingLostSteps(const absl::Status& why, FileSystem& files,
                                           const std::string& checkpoint_dir, int64_t global_step, bool is_chief);

}  // namespace muster
