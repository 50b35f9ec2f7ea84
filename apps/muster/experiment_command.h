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

// What the user means: `text`, or without one the last experiment of the project in the working directory (or, with no
// file there, the last of all). NotFound.
absl::StatusOr<ExperimentName> NameOrLast(Registry& registry, const std::string& text);

// Prints "muster COMMAND: message" and returns the exit code: 2 for what the user said wrong (InvalidArgument,
// NotFound, FailedPrecondition, IsWrongConfiguration), 1 otherwise.
int ReportError(const std::string& command, const absl::Status& status);

// The time as logs and tables show it: "2026-01-31T07:23:46Z".
std::string ShownTime(absl::Time time);
// "12 s", "4 min", "3 h", "2 d".
std::string ShownAge(absl::Duration age);

// Shows an experiment's lines as they come, from the beginning or (`last_lines`) from its end, until it has ended, all
// of it has been shown, and its supervisor is gone; or a signal ends this process (a caller that wants to detach
// catches SIGINT with `stop_fd`, readable when it is to return early). In a grid the lines of all runs. `only`: these
// tasks.
struct FollowOptions {
  std::vector<std::string> only;
  bool follow = true;   // false: what is there, and no more
  int last_lines = -1;  // of each task; -1: all
  bool json = false;    // an object a line: id, time, kind, text
  bool color = false;
  int stop_fd = -1;
};
// True if the experiment has ended.
absl::StatusOr<bool> ShowLog(const OpenedHome& opened, const ExperimentId& id, const FollowOptions& options);

}  // namespace muster
