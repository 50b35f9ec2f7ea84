// Slurm's short forms of lists, as its variables have them: "n[1-3,07-09],login1" names seven nodes, and "4(x2),8"
// counts 4, 4 and 8. Pure functions, thread-safe. What they accept is strict, and what they make has a limit, so that a
// short text can't ask for all of the memory.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace muster {

// Longer lists are refused.
inline constexpr int kMostSlurmNodes = 65'536;
// Larger counts, of the tasks on one node, are refused.
inline constexpr int kMostTasksOfANode = 4096;

// Returns the nodes in the order of the list. A name may have several brackets ("rack[1-2]n[01-02]"), of which the last
// one counts fastest, and a number is as wide as the first of its range ("[08-10]" is 08, 09, 10). InvalidArgument
// names the text, and what is wrong with it.
absl::StatusOr<std::vector<std::string>> ExpandNodeList(std::string_view text);

// Returns one count for each node: the form of SLURM_TASKS_PER_NODE. InvalidArgument names the text, and what is wrong
// with it.
absl::StatusOr<std::vector<int>> ExpandCounts(std::string_view text);

}  // namespace muster
