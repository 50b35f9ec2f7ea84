// What processes under test leave on the machine, whoever dies how: entries of /dev/shm, and files in the folder for
// temporary ones, of which they are given one of their own (TMPDIR). Not what others make meanwhile, who use /dev/shm,
// too: what was there before, belongs to another user, or is open in a process that is alive. Made before the first
// process is started and ended after the last one; fails then if there is anything. Used by one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/process/testing/by_hand.h"

namespace muster {

class LeftBehind {
 public:
  LeftBehind();
  ~LeftBehind();
  LeftBehind(const LeftBehind&) = delete;
  LeftBehind& operator=(const LeftBehind&) = delete;

  // Paths.
  std::vector<std::string> Entries() const;

 private:
  const std::vector<std::string> before_;  // names under /dev/shm
  const ScratchDirectory temporary_;
  std::optional<std::string> tmpdir_;  // as it was
};

}  // namespace muster
