// The whole of an example that only chooses an algorithm: the loop of examples/downpour/main.cc, where it is explained.
// No torch, so that such an example compiles in a second.
#pragma once

#include <cstdint>
#include <string>

#include "muster/algo/choice/algorithm_choice.h"

// Trains the network on the digits as this process's flags say. The algorithm and the number of steps are the
// example's own, unless flags say otherwise. --help names the algorithm, followed by `note`. The chief prints the
// accuracy on the test set. Returns main's result.
int TrainDigits(int argc, char** argv, const muster::AlgorithmChoice& standard, int64_t steps,
                const std::string& note = "");
