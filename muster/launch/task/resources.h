// What a task may use of a machine, and what a machine has. Plain values; functions are stateless and thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster {

// An unset field means no limit (GPUs: none).
struct Resources {
  std::optional<double> cpus;        // of one core, > 0
  std::optional<int64_t> mem_bytes;  // > 0
  std::optional<int> gpus;           // >= 0

  bool operator==(const Resources&) const = default;
};

// Returns `own`, with fields that it doesn't set from `defaults`.
Resources Merged(const Resources& own, const Resources& defaults);

// What ParseMemory accepts, for messages and as a pattern (ECMAScript) for the JSON schema.
inline constexpr char kMemoryForms[] = "a number (MB) or one with a unit: 16384, 512MB, 16GB, 1.5GB";
inline constexpr char kMemoryPattern[] = "^[0-9]+(\\.[0-9]+)?( ?[kKmMgGtT]([iI]?[bB])?)?$";
// Parses "16384" (MB, as in RiseML's files), "16GB", "512MB", "1.5GB", "16GiB", "300KB", also without the B: MB and GB
// are powers of 1024 here, like MiB and GiB. InvalidArgument saying what is accepted. `warning` (may be null) gets a
// line if a bare number is below 64, which may be meant as GB.
absl::StatusOr<int64_t> ParseMemory(std::string_view text, std::string* warning);
// Returns "16.0 GB", "512 MB".
std::string MemoryText(int64_t bytes);

struct Machine {
  int cores = 0;
  int64_t mem_bytes = 0;
  int gpus = 0;
};

// The folders from which a machine's resources are read.
struct MachineFolders {
  std::string proc = "/proc";
  std::string cgroups = "/sys/fs/cgroup";  // of version 2
  std::string gpus = "/proc/driver/nvidia/gpus";
};
// Returns this machine: cores and memory that this process may use (the minimum over its cgroup and those above), and
// GPUs as counted by CountGpus (node_layout.h). An unreadable limit counts as none; 0 memory means unknown.
Machine ThisMachine(const MachineFolders& folders = {});

// Returns all that the machine lacks: "9 cpus, this machine has 8; and for 4 gpus, this machine has 0; --no-gpus runs
// without". Returns "" if the task fits.
std::string LacksFor(const Resources& wanted, const Machine& machine);

}  // namespace muster
