// The rules that MakeUpdateRule chooses from, with their formulas. Hyperparameters have been validated. η is the step's
// learning rate, g the gradient after UpdateRule::Step and weight decay (element_rule.h), t the number of the update;
// slots start at 0 unless stated otherwise. Thread-safe, as UpdateRule is.
#pragma once

#include <memory>

#include "muster/optim/update_rule.h"

namespace muster {

// p ← p − η g
std::unique_ptr<UpdateRule> MakeSgd(const RuleSpec& spec);

// v ← μ v + g;  p ← p − η v, or with Nesterov's look-ahead p ← p − η (g + μ v). This is TensorFlow's MomentumOptimizer
// and torch::optim::SGD with momentum and no dampening.
std::unique_ptr<UpdateRule> MakeMomentum(const RuleSpec& spec);

// Kingma and Ba, arXiv 1412.6980, algorithm 1, as torch::optim::Adam computes it: m ← β₁ m + (1 − β₁) g;
// v ← β₂ v + (1 − β₂) g²;  p ← p − η / (1 − β₁ᵗ) · m / (√v / √(1 − β₂ᵗ) + ε).
// kAdamW (Loshchilov and Hutter, arXiv 1711.05101, torch::optim::AdamW): p ← (1 − η λ) p first, and λ p isn't in g.
std::unique_ptr<UpdateRule> MakeAdam(const RuleSpec& spec);

// Duchi, Hazan and Singer, JMLR 12 (2011), as torch::optim::Adagrad: s ← s + g²;
// p ← p − η / (1 + (t − 1) d) · g / (√s + ε), d being learning_rate_decay. s starts at initial_accumulator.
std::unique_ptr<UpdateRule> MakeAdagrad(const RuleSpec& spec);

// Hinton's lecture 6e, as torch::optim::RMSprop: s ← ρ s + (1 − ρ) g²;  u = g / (√s + ε), if centered (Graves, arXiv
// 1308.0850, equation 40) with √(s − m²) where m ← ρ m + (1 − ρ) g;  p ← p − η u, with momentum v ← μ v + u; p ← p − η
// v. If rounding makes s − m² negative, it counts as 0 (torch gets NaN).
std::unique_ptr<UpdateRule> MakeRmsProp(const RuleSpec& spec);

// Zeiler, arXiv 1212.5701, algorithm 1, with torch's learning rate: s ← ρ s + (1 − ρ) g²;  u = √(d + ε) / √(s + ε) · g;
// d ← ρ d + (1 − ρ) u²;  p ← p − η u.
std::unique_ptr<UpdateRule> MakeAdadelta(const RuleSpec& spec);

// McMahan et al., KDD 2013, algorithm 1, as TensorFlow's ApplyFtrl: n' = n + g²; z ← z + g − (n'^q − n^q) / η · p;  p ←
// 0 where |z| ≤ l1, else (sign(z) l1 − z) / (n'^q / η + 2 l2);  n ← n'. q is −learning_rate_power. n starts at
// initial_accumulator. The first update forgets p's initial value, as TensorFlow's does. With η = 0 (a schedule's end)
// nothing changes.
std::unique_ptr<UpdateRule> MakeFtrl(const RuleSpec& spec);

// p ← p + g, for deltas. Uses neither learning rate nor weight decay.
std::unique_ptr<UpdateRule> MakeAdd(const RuleSpec& spec);

}  // namespace muster
