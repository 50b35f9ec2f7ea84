// The sum of several minibatches' gradients, until they are pushed together. Halves are summed as floats. Used by the
// training thread.
#pragma once

#include <cstdint>
#include <vector>

#include "muster/algo/sources/gradient_source.h"

namespace muster {

class GradientSum {
 public:
  // Adds the gradients that `source` has now.
  void Add(GradientSource& source);
  // How many times since the last Clear.
  uint32_t minibatches() const { return minibatches_; }

  // Of variable i, of its own type; empty where no minibatch had a gradient. Valid until the next Add.
  ByteSpan sum(size_t i);

  // sum ← scale · sum, of every variable.
  void Scale(double scale);

  // Nothing has been added; the memory is kept.
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
