// The algorithm of a plan: the commit pipeline, or what does the same without its copies (docs/algorithms.md, "The
// commit pipeline").
#pragma once

#include <memory>

#include "muster/algo/choice/algorithm_choice.h"
#include "muster/algo/methods/all_reduce.h"

namespace muster {

// `source` must outlive it. `join` and `all_reduce` are for all-reduce, which needs them.
std::unique_ptr<Algorithm> MakeAlgorithm(const AlgorithmPlan& plan, GradientSource& source, PlacementResult placement,
                                         AllReduceAlgorithm::Join join = {}, const AllReduceOptions& all_reduce = {});

}  // namespace muster
