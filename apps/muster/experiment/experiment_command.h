// What the commands about experiments have in common.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/base/clock.h"
#include "muster/launch/registry/home.h"
#include "muster/launch/registry/registry.h"

namespace muster {

struct OpenedHome {
  Home home;
  std::unique_ptr<Registry> registry;
};

// MUSTER_HOME (~/.muster) and its registry, after Registry::Reconcile, whose finds it says on stderr, as it does
// what keeps it from writing them down (a full disk): nobody needs them to go on.
absl::StatusOr<OpenedHome> OpenHome();
// For commands that only read: also where this user may not write, as somebody else's.
absl::StatusOr<OpenedHome> OpenHomeToRead();

// Registry::Reconcile, whose finds it says on stderr: of a grid in one line, not of each run that waited.
absl::StatusOr<std::vector<ExperimentId>> ReconcileAloud(Registry& registry, const Home& home);

// What the user means: `text`, or without one the last experiment of the project in the working directory (or, with no
// file there, the last of all). NotFound.
absl::StatusOr<ExperimentName> NameOrLast(Registry& registry, const std::string& text);

// Checks an ID of the command line: what is wrong with it, or "". An empty one, as "$id" is where no such variable is
// set, would mean the last experiment.
std::string RefuseEmptyId(const std::string& id);

// Prints "muster COMMAND: message" and returns the exit code: 2 for what the user said wrong (InvalidArgument,
// NotFound, FailedPrecondition, IsWrongConfiguration), 1 otherwise.
int ReportError(const std::string& command, const absl::Status& status);

// The time as logs and tables show it: "2026-01-31T07:23:46Z".
std::string ShownTime(absl::Time time);
// "12 s", "4 min", "3 h", "2 d".
std::string ShownAge(absl::Duration age);

}  // namespace muster
