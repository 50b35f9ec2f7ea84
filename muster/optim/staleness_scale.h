// By how much an update is made smaller for being stale: by τ, the updates of others between the pull that it was
// computed from and its own application. The ps that applies it knows τ, and takes it in the same moment. Pure; the
// numbers are written to the wire: never renumber.
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
