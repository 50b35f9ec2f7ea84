// Shows an experiment's lines on stdout as they come: shared by `muster train` and `muster logs`, and used by `muster
// kill`. Used by one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/muster/experiment/experiment_command.h"
#include "muster/launch/task_log/log_reader.h"

namespace muster {

// Returns a reader of an experiment's or a run's lines from the beginning; for a grid, those of all its runs. `only`:
// these tasks. In a home that other hosts write it looks by itself, as nothing tells what they write.
std::unique_ptr<LogReader> OpenLog(const OpenedHome& opened, const RunRecord& run,
                                   const std::vector<std::string>& only = {});

// Makes the reader skip all that has been written. Must be called before its first ReadMore, while nothing is being
// written.
[[nodiscard]] absl::Status PassOverAll(LogReader& reader);

// Returns the name of a line from a reader of `id`: "4.worker.1"; for the experiment's own lines "4", for a run's
// "4.3".
std::string NameOfLine(const ExperimentId& id, const LogLineRecord& line);

// Returns the width to which those names are padded: the longest that may come. `only`: these tasks.
absl::StatusOr<size_t> WidthOfNames(Registry& registry, const RunRecord& run,
                                    const std::vector<std::string>& only = {});

struct FollowOptions {
  std::vector<std::string> only;            // these tasks; empty: all
  bool follow = true;                       // false: only what exists now
  int last_lines = -1;                      // of each task; -1: all
  absl::Time since = absl::InfinitePast();  // without what was written before
  LogReader* reader = nullptr;              // a reader from OpenLog to continue; only and last_lines are ignored then
  bool json = false;                        // one object per line: id, time, stream, text
  bool color = false;
  int stop_fd = -1;
};

// Shows an experiment's lines as they come, from the beginning or as `options` says, until it has ended, all has been
// shown and its supervisor is gone. Returns earlier when `stop_fd` becomes readable, with which a caller that wants to
// detach on SIGINT catches it. Returns whether the experiment has ended.
absl::StatusOr<bool> ShowLog(const OpenedHome& opened, const ExperimentId& id, const FollowOptions& options);

}  // namespace muster
