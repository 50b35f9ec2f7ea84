// How to scale down a stale update, by τ: the number of other updates between the pull that it was computed from and
// its own application. The ps that applies it knows τ and uses it in the same moment. Pure; the numbers are part of the
// wire format: never renumber.
#pragma once

#include <cstdint>

namespace muster {

enum class StalenessScale : uint8_t {
  kNone = 0,
  kInverseAfterThis =
      1,         // 1 / (τ + 1): DynSGD (Jiang et al., "Heterogeneity-aware Distributed Parameter Servers", 2017)
  kInverse = 2,  // 1 / τ, and 1 for τ = 0: staleness-aware async-SGD (Zhang et al., arXiv 1511.05950, eq. 6)
};

inline double ScaleOf(StalenessScale scale, uint64_t staleness) {
  if (scale == StalenessScale::kInverseAfterThis) return 1 / (static_cast<double>(staleness) + 1);
  if (scale == StalenessScale::kInverse && staleness > 0) return 1 / static_cast<double>(staleness);
  return 1;
}

}  // namespace muster
