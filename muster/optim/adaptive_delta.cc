#include "muster/optim/adaptive_delta.h"

#include "muster/optim/change_elements.h"

namespace muster {

// Computes in double for every type: as a float a small γ would be 0, and a weight that hasn't moved would give 0 / 0.
void AdaptiveDelta::Change(const Block& block, MutableByteSpan into) const {
  const auto smaller = [gamma = gamma_](auto delta, auto moved) {
    const auto distance = static_cast<double>(moved);
    return static_cast<decltype(delta)>(delta / (distance * distance / gamma + 1));
  };
  ChangeElements(block, smaller, into);
}

}  // namespace muster
