// What a worker takes of a core while it waits: for a ps that isn't there yet, for the chief to initialise the model,
// for its round, for the slowest one under a bound of staleness, at a barrier, in an all-reduce. Part of `bench ps`.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace muster::bench {

// "a ps that isn't there", "the chief", …: what can be waited for.
std::vector<std::string> Waits();

// Of one core, over `seconds`, of a worker that does nothing but wait for that, one of Waits(); none: it ended before.
std::optional<double> WaitingShare(const std::string& what, double seconds);

// The program's own part in it: a process of the cluster that TF_CONFIG describes. Returns when somebody ends it.
int WaitAs(const std::string& what);

}  // namespace muster::bench
