// Writes amounts of resources as quantities of Kubernetes. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <string>

namespace muster {

// Returns "512Mi" or "2Gi", or a number of bytes that is no whole number of these.
std::string MemoryQuantity(int64_t bytes);
// Returns "2", or "500m" for half a processor; what is between two thousandths is the larger one.
std::string CpuQuantity(double cpus);

}  // namespace muster
