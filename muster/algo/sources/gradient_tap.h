// What a step's update is made of, shown to those who want to look at it: hooks that log norms or histograms. A
// worker's own gradients, as it gives them to the ps; with all-reduce the mean of all workers', which each of them
// applies. Costs a comparison a step while nobody looks. Used by the training thread.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "muster/algo/sources/gradient_source.h"

namespace muster {

// Valid for the call only.
struct GradientView {
  const std::vector<VariableSpec>& variables;
  // Of a variable, of its type and shape; empty: it isn't trainable, or had no part in the minibatch, or is a table.
  absl::FunctionRef<ByteSpan(size_t variable)> gradient;
  std::span<const TableGradient> rows;  // of the tables that had a part
};

using GradientObserver = std::function<void(const GradientView&)>;

class GradientTap {
 public:
  // Who is shown the gradients of the steps from now on; borrowed until the next call.
  void Observe(std::span<const GradientObserver> observers) { observers_ = observers; }

  // By the algorithm, in each step, once gradients are final.
  bool observed() const { return !observers_.empty(); }
  void Show(const GradientView& view) const {
    for (const GradientObserver& observer : observers_) observer(view);
  }

 private:
  std::span<const GradientObserver> observers_;
};

}  // namespace muster
