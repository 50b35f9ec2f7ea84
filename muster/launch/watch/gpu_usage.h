// How much of the machine's GPUs is in use, as nvidia-smi says. Functions without state, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"

namespace muster {

struct GpuUsage {
  int index = 0;
  std::string uuid;               // "GPU-5ce1…"
  std::optional<double> percent;  // of the time somebody computed there; unset where the driver can't tell (MIG)
  std::optional<int64_t> mem_bytes, mem_total;

  bool operator==(const GpuUsage&) const = default;
};

// What `program` prints, run with the arguments that ReadGpuUsage gives it: a line a GPU. Lines that it doesn't
// understand are passed over.
std::vector<GpuUsage> ParseGpuUsage(std::string_view text);

// Runs `program` ("nvidia-smi", looked for on PATH); nothing if there is none, it fails, or it hasn't answered within
// `within` (it is killed then).
std::vector<GpuUsage> ReadGpuUsage(const std::string& program, absl::Duration within = absl::Seconds(2));

// The one that a visible-devices variable names, by number or by its uuid's beginning; null: none of `gpus`.
const GpuUsage* FindGpu(const std::vector<GpuUsage>& gpus, std::string_view name);

}  // namespace muster
