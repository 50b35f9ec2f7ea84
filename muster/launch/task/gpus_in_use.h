// How much of its GPUs a task uses. A plain value.
#pragma once

#include <cstdint>
#include <optional>

namespace muster {

struct GpusInUse {
  int count = 0;                                // found GPUs of the task; without any, the others are unset
  std::optional<double> percent;                // mean of those whose driver can tell (not MIG)
  std::optional<int64_t> mem_bytes, mem_total;  // of all of them

  bool operator==(const GpusInUse&) const = default;
};

}  // namespace muster
