// An experiment's lines on stdout as they come: what `muster train` and `muster logs` do alike, and what `muster kill`
// needs of it. Used by one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "apps/muster/experiment/experiment_command.h"
#include "muster/launch/task_log/log_reader.h"

namespace muster {

// What reads the lines of an experiment or a run from the beginning, of a grid those of all its runs. `only`: of these
// tasks.
std::unique_ptr<LogReader> OpenLog(const Home& home, const RunRecord& run, const std::vector<std::string>& only = {});

// What the reader gives from now on is what is written from now on. Before its first ReadMore, while nobody writes.
[[nodiscard]] absl::Status PassOverAll(LogReader& reader);

// Of a line that a reader of `id` gives: "4.worker.1"; of the experiment's own lines "4", of a run's "4.3".
std::string NameOfLine(const ExperimentId& id, const LogLineRecord& line);

// To how many characters those names are filled up: the longest that may come. `only`: of these tasks.
absl::StatusOr<size_t> WidthOfNames(Registry& registry, const RunRecord& run,
                                    const std::vector<std::string>& only = {});

struct FollowOptions {
  std::vector<std::string> only;  // these tasks; empty: all
  bool follow = true;             // false: what is there, and no more
  int last_lines = -1;            // of each task; -1: all
  LogReader* reader = nullptr;    // OpenLog's, to go on with; only and last_lines don't count then
  bool json = false;              // an object a line: id, time, stream, text
  bool color = false;
  int stop_fd = -1;
};

// Shows an experiment's lines as they come, from the beginning or as `options` says, until it has ended, all of it has
// been shown, and its supervisor is gone; or a signal ends this process (a caller that wants to detach catches SIGINT
// with `stop_fd`, readable when it is to return early). True if the experiment has ended.
absl::StatusOr<bool> ShowLog(const OpenedHome& opened, const ExperimentId& id, const FollowOptions& options);

}  // namespace muster
