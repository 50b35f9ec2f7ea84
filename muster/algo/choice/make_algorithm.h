// Makes the algorithm of a plan: the commit pipeline, or a simpler class that does the same without its copies
// (docs/algorithms.md, "The commit pipeline").
#pragma once

#include <memory>

#include "muster/algo/algorithms/all_reduce.h"
#include "muster/algo/choice/algorithm_choice.h"

namespace muster {

// `source` must outlive it. Only all-reduce uses `join` and `all_reduce`, and needs them.
std::unique_ptr<Algorithm> MakeAlgorithm(const AlgorithmPlan& plan, GradientSource& source, PlacementResult placement,
                                         AllReduceAlgorithm::Join join = {}, const AllReduceOptions& all_reduce = {});

}  // namespace muster
