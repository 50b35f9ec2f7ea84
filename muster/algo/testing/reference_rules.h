// Update rules on plain vectors of doubles, written from their papers for the simulation of reference_training.h.
// Shares no code with the project. Test-only.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace muster {

using ReferenceVector = std::vector<double>;

struct ReferenceRule {
  enum class Kind { kNone, kAdd, kSgd, kMomentum, kNesterov, kAdagrad, kAdam, kAdamW };
  Kind kind = Kind::kNone;
  double rate = 0;
  double momentum = 0.9;
  double decay = 0;  // kAdamW
};

// A rule and its state.
class ReferenceOptimizer {
 public:
  explicit ReferenceOptimizer(const ReferenceRule& rule) : rule_(rule) {}

  // Computes p ← rule(p, g) with `factor` times its rate; for kAdd, p ← p + factor · g.
  void Move(ReferenceVector& p, const ReferenceVector& g, double factor = 1) {
    first_.resize(p.size());
    second_.resize(p.size());
    ++t_;
    for (size_t i = 0; i < p.size(); ++i) p[i] += Step(i, p[i], g[i], factor);
  }

 private:
  double Step(size_t i, double p, double g, double factor) {
    const double rate = rule_.rate * factor;
    switch (rule_.kind) {
      case ReferenceRule::Kind::kNone:
        return 0;
      case ReferenceRule::Kind::kAdd:
        return factor * g;
      case ReferenceRule::Kind::kSgd:
        return -rate * g;
      case ReferenceRule::Kind::kMomentum:
        first_[i] = rule_.momentum * first_[i] + g;
        return -rate * first_[i];
      case ReferenceRule::Kind::kNesterov:
        first_[i] = rule_.momentum * first_[i] + g;
        return -rate * (rule_.momentum * first_[i] + g);
      case ReferenceRule::Kind::kAdagrad:
        first_[i] += g * g;
        return -rate * g / (std::sqrt(first_[i]) + 1e-10);
      case ReferenceRule::Kind::kAdam:
        return AdamStep(i, g, rate);
      case ReferenceRule::Kind::kAdamW:
        return AdamStep(i, g, rate) - rate * rule_.decay * p;
    }
    return 0;
  }
  double AdamStep(size_t i, double g, double rate) {
    first_[i] = 0.9 * first_[i] + (1 - 0.9) * g;
    second_[i] = 0.999 * second_[i] + (1 - 0.999) * g * g;
    const double mean = first_[i] / (1 - std::pow(0.9, t_));
    const double square = second_[i] / (1 - std::pow(0.999, t_));
    return -rate * mean / (std::sqrt(square) + 1e-8);
  }

  ReferenceRule rule_;
  ReferenceVector first_, second_;
  int t_ = 0;
};

}  // namespace muster
