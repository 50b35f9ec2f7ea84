// The sum of several minibatches' gradients, which are pushed together. Halves are summed as floats. Used by the
// training thread.
#pragma once

#include <cstdint>
#include <vector>

#include "muster/algo/sources/gradient_source.h"

namespace muster {

class GradientSum {
 public:
  // Adds the current gradients of `source`.
  void Add(GradientSource& source);
  // How often Add was called since the last Clear.
  uint32_t minibatches() const { return minibatches_; }

  // Returns the sum for variable i in its own type; empty if no minibatch had a gradient. Valid until the next Add.
  ByteSpan sum(size_t i);

  // Computes sum ← scale · sum for every variable.
  void Scale(double scale);

  // Forgets all that was added; keeps the memory.
  void Clear() { minibatches_ = 0; }

 private:
  struct Sum {
    bool any = false;               // since the last Clear
    std::vector<std::byte> wide;    // of SlotDType
    std::vector<std::byte> narrow;  // of halves, as they are pushed
  };
  std::vector<VariableSpec> variables_;
  std::vector<Sum> sums_;
  uint32_t minibatches_ = 0;
};

}  // namespace muster
