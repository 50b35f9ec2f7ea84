// Brings files that a run has written below OUTPUT_DIR in its job into the same folder here (docs/far_homes.md): small
// ones as they come, all at the end if they aren't too large or somebody wants them. The caller holds no lock: it is
// the collector. Blocking; not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/launch/engines/job_engine.h"
#include "muster/launch/registry/home.h"

namespace muster {

struct FarOutputOptions {
  static constexpr int64_t kSmallFile = int64_t{1} << 20;
  static constexpr int64_t kSmallOutput = int64_t{256} << 20;
  // What files that have come, and that the job has removed since, may take here until no others come.
  static constexpr int64_t kLeftOver = int64_t{1} << 30;

  bool at_end = false;                          // nothing is written any more
  bool everything = false;                      // whatever its size and number
  absl::Duration patience = absl::Seconds(10);  // after which no further file is begun, nor a piece asked for
};

struct FetchedOutput {
  int files = 0;                       // that have come
  std::vector<std::string> left = {};  // those that stay behind, with why
  bool more = false;                   // time was over
};

// Goes on where an earlier call has stopped. Errors are those of AskFar and of writing the files; DataLoss: the job's
// list has what it may not have.
absl::StatusOr<FetchedOutput> FetchOutput(const Home& home, const ExperimentId& id, JobEngine& engine,
                                          const std::string& job, const Clock& clock, const FarOutputOptions& options);

}  // namespace muster
