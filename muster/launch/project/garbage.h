// What `muster gc` removes below MUSTER_HOME, and what it must not: docs/experiments/code.md. It may run
// beside any other command: whatever somebody has found or made in the last hour stays (`muster train` finds a tree
// before the registry knows that it is used), and so does what somebody holds the lock of. Blocking; one at a time per
// Registry.
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
  // Of code, builds and environments that no experiment of the registry uses: those that were used last longer ago.
  // Less than an hour is an hour.
  absl::Duration older_than = absl::Hours(1);
  // Ended experiments that ended longer ago are forgotten, with their folders; nullopt: none is.
  std::optional<absl::Duration> experiments_older_than;
  int keep = 0;          // so many of the experiments that ended last stay, however old
  bool dry_run = false;  // only says what it would remove
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
  std::vector<std::string> problems;  // what couldn't be removed
};

// An error only where nothing could be looked at; then nothing was removed either, but experiments that were forgotten.
absl::StatusOr<GarbageReport> CollectGarbage(const Home& home, Registry& registry, const Clock& clock,
                                             const GarbageOptions& options);

}  // namespace muster
