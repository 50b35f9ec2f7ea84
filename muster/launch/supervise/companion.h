// A process that runs beside the tasks of a run until they have ended, such as TensorBoard. The tasks go on without it
// if it fails. Used by the thread that runs the loop.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "muster/launch/backends/backend.h"
#include "muster/launch/system/fd_loop.h"

namespace muster {

class Companion {
 public:
  // Borrows the backend, which must outlive it. `say` takes lines for the user.
  Companion(ProcessSpec process, Backend& backend, std::function<void(const std::string&)> say)
      : process_(std::move(process)), backend_(backend), say_(std::move(say)) {}

  // Returns whether `task` is the companion.
  bool Is(const TaskId& task) const { return process_.task == task; }
  void Launch();
  // Must be called when it couldn't be started, which is only reported to the user.
  void OnNotStarted(const absl::Status& why);
  // Must be called when it has ended. `early`: it ended before the tasks, which is reported to the user.
  void OnExit(const ExitStatus& status, bool early);
  // Asks it to end, so that it can end the processes that it has started, and waits briefly for that.
  void End(FdLoop& loop);

 private:
  const ProcessSpec process_;
  Backend& backend_;
  const std::function<void(const std::string& line)> say_;
  bool runs_ = false;
};

}  // namespace muster
