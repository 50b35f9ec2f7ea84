// What a page of docs/ tells its reader to write or to run.
#pragma once

#include <string>
#include <vector>

namespace muster {

// Returns the blocks of this language ("bash") in a chapter of a page: "slurm.md".
std::vector<std::string> BlocksOfPage(const std::string& page, const std::string& chapter, const std::string& language);

}  // namespace muster
