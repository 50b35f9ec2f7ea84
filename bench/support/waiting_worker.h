// Measures the share of a core that a worker uses while it waits: for a ps that isn't running yet, for the chief to
// initialise the model, for its round, for the slowest worker under a bound of staleness, at a barrier, in an
// all-reduce. Part of `bench ps`.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace muster::bench {

// Returns what can be waited for: "a ps that isn't there", "the chief", …
std::vector<std::string> Waits();

// Returns the share of one core, over `seconds`, that a worker uses while it waits for `what`, one of Waits(); nullopt:
// it ended before.
std::optional<double> WaitingShare(const std::string& what, double seconds);

// Runs the waiting process: a task of the cluster that TF_CONFIG describes. Returns when it is told to end.
int WaitAs(const std::string& what);

}  // namespace muster::bench
