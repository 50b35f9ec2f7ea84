// A process that runs beside the tasks of a run until they have ended, and without which they go on: TensorBoard.
// Used by the thread that runs the loop.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "muster/launch/backends/backend.h"
#include "muster/launch/system/fd_loop.h"

namespace muster {

class Companion {
 public:
  // `process`: nothing, and there is none. Borrows the backend, which must outlive it.
  // `say` takes lines for the user.
  Companion(std::optional<ProcessSpec> process, Backend& backend, std::function<void(const std::string&)> say)
      : process_(std::move(process)), backend_(backend), say_(std::move(say)) {}

  // Whether `task` is it.
  bool Is(const TaskId& task) const { return process_.has_value() && process_->task == task; }
  // That it can't be started is only said.
  void Launch();
  // It has ended. `early`: before the tasks, which is said.
  void OnExit(const ExitStatus& status, bool early);
  // Asks it to end, so that it takes those with it that it has started, and waits a moment for that.
  void End(FdLoop& loop);

 private:
  const std::optional<ProcessSpec> process_;
  Backend& backend_;
  const std::function<void(const std::string& line)> say_;
  bool runs_ = false;
};

}  // namespace muster
