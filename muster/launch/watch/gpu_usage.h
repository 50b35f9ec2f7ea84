// Reads the use of the machine's GPUs from nvidia-smi. Functions without state, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "muster/launch/task/gpus_in_use.h"

namespace muster {

struct GpuUsage {
  int index = 0;
  std::string uuid;               // "GPU-5ce1…"
  std::optional<double> percent;  // of the time that it computed; unset if the driver can't tell (MIG)
  std::optional<int64_t> mem_bytes, mem_total;

  bool operator==(const GpuUsage&) const = default;
};

// Parses the output of a GpuQuery: one line per GPU. Skips lines that it doesn't understand.
std::vector<GpuUsage> ParseGpuUsage(std::string_view text);

// Returns the command line of `program` whose output ParseGpuUsage parses.
std::vector<std::string> GpuQuery(const std::string& program);

// Runs `program` ("nvidia-smi", found on PATH). Returns nothing if it is missing, fails or takes longer than `within`,
// after which it is killed.
std::vector<GpuUsage> ReadGpuUsage(const std::string& program, absl::Duration within = absl::Seconds(2));

// Returns the sums over the GPUs of a visible-devices variable, "0,2".
GpusInUse SumGpus(const std::string& visible, const std::vector<GpuUsage>& gpus);

// Returns the GPU that a visible-devices variable names, by number or by a prefix of its uuid; null: none of `gpus`.
const GpuUsage* FindGpu(const std::vector<GpuUsage>& gpus, std::string_view name);

}  // namespace muster
