// Says in a worker's log what it talks with each ps through, and when that has become something else. Used by the
// training thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace muster {

class LinkNotice {
 public:
  // `link`: Channel::Stats::link, of now.
  void Look(size_t ps, const char* link);

 private:
  std::vector<std::string> said_;  // one a ps; empty: nothing yet
};

}  // namespace muster
