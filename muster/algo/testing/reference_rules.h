// Update rules on plain vectors of doubles, for the simulation of reference_training.h: each element goes by
// optim/testing/reference_rule.h, so no code is shared with the product. Test-only.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "muster/base/check.h"
#include "muster/optim/testing/reference_rule.h"

namespace muster {

using ReferenceVector = std::vector<double>;

// A rule and what it remembers; without a rule nothing moves.
class ReferenceOptimizer {
 public:
  explicit ReferenceOptimizer(const std::optional<RuleSpec>& rule) : rule_(rule) {}

  // Computes p ← rule(p, g) with `factor` times its rate; for kAdd, p ← p + factor · g.
  void Move(ReferenceVector& p, const ReferenceVector& g, double factor = 1) {
    if (!rule_) return;
    elements_.resize(p.size());
    const UpdateRule::Step step = {.learning_rate = rule_->learning_rate * factor,
                                   .t = ++t_,
                                   .gradient_scale = rule_->kind == RuleKind::kAdd ? factor : 1};
    for (size_t i = 0; i < p.size(); ++i) {
      elements_[i].p = p[i];
      MUSTER_CHECK(elements_[i].Apply(*rule_, g[i], step));
      p[i] = elements_[i].p;
    }
  }

 private:
  std::optional<RuleSpec> rule_;
  std::vector<ReferenceElement> elements_;
  uint64_t t_ = 0;
};

}  // namespace muster
