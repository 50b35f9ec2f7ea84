// Where the supervisor of a run in a job leaves its addresses and secret for its agents, which see that folder.
#pragma once

#include <string>

namespace muster {

inline std::string RendezvousFileIn(const std::string& folder, const std::string& run_id) {
  return folder + "/.muster-" + run_id;
}

}  // namespace muster
