// Decides what `muster gc` removes below MUSTER_HOME: docs/experiments/code.md. It may run beside any other
// command: it keeps what was found or made in the last hour (`muster train` finds a tree before the registry knows that
// it is used) and whatever is locked. Blocking; one at a time per Registry.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/launch/registry/home.h"
#include "muster/launch/registry/registry.h"

namespace muster {

struct GarbageOptions {
  // Removes code, builds and environments that no experiment of the registry uses and that were last used longer ago
  // than this. Less than an hour counts as an hour.
  absl::Duration older_than = absl::Hours(1);
  // Forgets experiments that ended longer ago than this, with their folders; nullopt: none.
  std::optional<absl::Duration> experiments_older_than;
  int keep = 0;          // this many of the experiments that ended last stay, however old
  bool dry_run = false;  // only report what would be removed
};

enum class GarbageKind { kExperiment, kCode, kBuild, kEnvironment, kLeftover };

// "experiment", "code", "build", "environment", "leftover".
std::string_view Name(GarbageKind kind);

struct Garbage {
  GarbageKind kind;
  std::string path;  // below MUSTER_HOME, "code/3f2a…", "experiments/4"
  int64_t bytes = 0;
};

struct GarbageReport {
  std::vector<Garbage> removed;       // or would be
  int64_t bytes = 0;                  // of all
  std::vector<std::string> notes;     // what was left alone though it looks like garbage, and why
  std::vector<std::string> problems;  // why something that looks like garbage was left alone
};

// Returns an error only if nothing could be looked at; then nothing was removed except experiments that were forgotten.
absl::StatusOr<GarbageReport> CollectGarbage(const Home& home, Registry& registry, const Clock& clock,
                                             const GarbageOptions& options);

}  // namespace muster
