// Finds what processes under test leave on the machine, however they die: entries of /dev/shm, and files in the folder
// for temporary files, for which it gives them one of their own (TMPDIR). Ignores what other programs make meanwhile,
// which also use /dev/shm: what existed before, belongs to another user, or is open in a living process. Construct it
// before the first process is started and destroy it after the last one has ended; it fails then if it finds anything.
// Used by one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "muster/base/testing/scratch_folder.h"
#include "tests/process/testing/by_hand.h"

namespace muster {

class LeftBehind {
 public:
  LeftBehind();
  ~LeftBehind();
  LeftBehind(const LeftBehind&) = delete;
  LeftBehind& operator=(const LeftBehind&) = delete;

  // Returns their paths.
  std::vector<std::string> Entries() const;

 private:
  const std::vector<std::string> before_;  // names under /dev/shm
  const ScratchFolder temporary_;
  std::optional<std::string> tmpdir_;  // its previous value
};

}  // namespace muster
