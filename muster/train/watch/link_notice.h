// Logs through what a worker talks with each ps, and when that changes. Used by the training thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace muster {

class LinkNotice {
 public:
  // `link` is the current Channel::Stats::link.
  void Check(size_t ps, const char* link);

 private:
  std::vector<std::string> said_;  // one for each ps; empty: nothing logged yet
};

}  // namespace muster
