// Shows new lines about the states of an experiment's tasks, for `muster kill`. Used by one thread.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "apps/muster/experiment/experiment_command.h"
#include "muster/launch/task_log/log_reader.h"

namespace muster {

class ShownStates {
 public:
  // From here on. Errors are those of the registry and of the logs.
  static absl::StatusOr<ShownStates> Begin(const OpenedHome& opened, const RunRecord& run);

  // Shows new lines about states, not the tasks' own output.
  absl::Status Show();
  // Readable when there are some; -1: that isn't told here.
  int wake_fd() const { return reader_->wake_fd(); }

 private:
  ShownStates(const ExperimentId& id, std::unique_ptr<LogReader> reader, size_t width)
      : id_(id), reader_(std::move(reader)), width_(width) {}

  ExperimentId id_;
  std::unique_ptr<LogReader> reader_;
  size_t width_;
};

}  // namespace muster
