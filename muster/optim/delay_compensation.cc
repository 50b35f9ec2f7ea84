#include "muster/optim/delay_compensation.h"

#include "muster/optim/change_elements.h"

namespace muster {

void DelayCompensation::Change(const Block& block, MutableByteSpan into) const {
  const auto compensated = [lambda = lambda_](auto g, auto moved) {
    return g + static_cast<decltype(g)>(lambda) * g * g * moved;
  };
  ChangeElements(block, compensated, into);
}

}  // namespace muster
