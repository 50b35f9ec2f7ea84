// Shows a step's gradients to observers: hooks that log norms or histograms. These are a worker's own gradients as it
// sends them to the ps; with all-reduce, the mean over all workers, which each of them applies. Costs one comparison a
// step if there are no observers. Used by the training thread.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "muster/algo/sources/gradient_source.h"

namespace muster {

// Valid during the call only.
struct GradientView {
  const std::vector<VariableSpec>& variables;
  // The gradient of a variable, in its type and shape. Empty: it isn't trainable, wasn't used in the minibatch, or is a
  // table.
  absl::FunctionRef<ByteSpan(size_t variable)> gradient;
  std::span<const TableGradient> rows;  // of the tables that were used
};

using GradientObserver = std::function<void(const GradientView&)>;

class GradientTap {
 public:
  // Sets the observers of all later steps' gradients. They must stay alive until the next call.
  void Observe(std::span<const GradientObserver> observers) { observers_ = observers; }

  // The algorithm calls these in each step, once gradients are final.
  bool observed() const { return !observers_.empty(); }
  void Show(const GradientView& view) const {
    for (const GradientObserver& observer : observers_) observer(view);
  }

 private:
  std::span<const GradientObserver> observers_;
};

}  // namespace muster
