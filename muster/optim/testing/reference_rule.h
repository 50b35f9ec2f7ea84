// The published rules, one element at a time, in double: tests compare the vectorised ones with them. Obvious rather
// than fast; shares no code with them. Test-only.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "muster/optim/update_rule.h"

namespace muster {

struct ReferenceElement {
  double p = 0;
  std::array<double, 3> s = {};  // slots, in the order of UpdateRule::slots()

  // False, and nothing has changed, if there is no reference of that rule.
  [[nodiscard]] bool Apply(const RuleSpec& rule, double g, const UpdateRule::Step& step) {
    const double rate = step.learning_rate, t = static_cast<double>(step.t), eps = rule.epsilon, rho = rule.rho;
    g *= step.gradient_scale;
    if (!std::isnan(g)) g = std::clamp(g, -step.clip_value, step.clip_value);
    if (rule.kind != RuleKind::kAdamW && rule.kind != RuleKind::kAdd) g += rule.weight_decay * p;
    switch (rule.kind) {
      case RuleKind::kSgd:
        p -= rate * g;
        break;
      case RuleKind::kMomentum:
        s[0] = rule.momentum * s[0] + g;
        p -= rate * (rule.nesterov ? g + rule.momentum * s[0] : s[0]);
        break;
      case RuleKind::kAdamW:
        p -= rate * rule.weight_decay * p;
        [[fallthrough]];
      case RuleKind::kAdam: {
        s[0] = rule.beta1 * s[0] + (1 - rule.beta1) * g;
        s[1] = rule.beta2 * s[1] + (1 - rule.beta2) * g * g;
        const double m_hat = s[0] / (1 - std::pow(rule.beta1, t)), v_hat = s[1] / (1 - std::pow(rule.beta2, t));
        p -= rate * m_hat / (std::sqrt(v_hat) + eps);
        break;
      }
      case RuleKind::kAdagrad:
        s[0] += g * g;
        p -= rate / (1 + (t - 1) * rule.learning_rate_decay) * g / (std::sqrt(s[0]) + eps);
        break;
      case RuleKind::kRmsProp: {
        s[0] = rho * s[0] + (1 - rho) * g * g;
        if (rule.centered) s[1] = rho * s[1] + (1 - rho) * g;
        const double variance = rule.centered ? std::max(0.0, s[0] - s[1] * s[1]) : s[0];
        double& velocity = s[rule.centered ? 2 : 1];
        const double move = g / (std::sqrt(variance) + eps);
        if (rule.momentum > 0) velocity = rule.momentum * velocity + move;
        p -= rate * (rule.momentum > 0 ? velocity : move);
        break;
      }
      case RuleKind::kAdadelta: {
        s[0] = rho * s[0] + (1 - rho) * g * g;
        const double delta = std::sqrt(s[1] + eps) / std::sqrt(s[0] + eps) * g;
        s[1] = rho * s[1] + (1 - rho) * delta * delta;
        p -= rate * delta;
        break;
      }
      case RuleKind::kFtrl: {
        const double n = s[0] + g * g, q = -rule.learning_rate_power;
        double& z = s[1];
        z += g - (std::pow(n, q) - std::pow(s[0], q)) / rate * p;
        s[0] = n;
        p = std::abs(z) <= rule.l1 ? 0 : (std::copysign(rule.l1, z) - z) / (std::pow(n, q) / rate + 2 * rule.l2);
        break;
      }
      case RuleKind::kAdd:
        p += g;
        break;
      default:
        return false;
    }
    return true;
  }
};

}  // namespace muster
