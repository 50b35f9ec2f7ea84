// The rules that MakeUpdateRule chooses from. Hyperparameters have been validated. Thread-safe, as UpdateRule is.
#pragma once

#include <memory>

#include "muster/optim/update_rule.h"

namespace muster {

// p ← p − η g
std::unique_ptr<UpdateRule> MakeSgd();

// v ← μ v + g;  p ← p − η v, or with Nesterov's look-ahead p ← p − η (g + μ v). v starts at 0. This is TensorFlow's
// MomentumOptimizer and torch::optim::SGD with momentum and no dampening.
std::unique_ptr<UpdateRule> MakeMomentum(double momentum, bool nesterov);

// Kingma and Ba, arXiv 1412.6980, algorithm 1, as torch::optim::Adam computes it: m ← β₁ m + (1 − β₁) g;
// v ← β₂ v + (1 − β₂) g²;  p ← p − η / (1 − β₁ᵗ) · m / (√v / √(1 − β₂ᵗ) + ε).
std::unique_ptr<UpdateRule> MakeAdam(double beta1, double beta2, double epsilon);

}  // namespace muster
