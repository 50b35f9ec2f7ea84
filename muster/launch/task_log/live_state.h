// What stands now in lines that a task overwrites, such as a progress bar: a file `live` beside the files of its log
// (docs/experiments/logs.md), which is replaced as a whole, so that a bar is seen as it moves and never fills the log.
// One writer per task, any number of readers in other processes. The functions are thread-safe.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "muster/launch/task_log/log_format.h"

namespace muster {

// Replaces what is shown by `lines`, which LogLineFormat has made; none: removes the file. Makes the folder if it is
// missing. A disk that is full changes nothing: the next state may fit.
void WriteLiveState(const std::string& folder, std::string_view lines);

// Calls `take` with each line; with none if there is no such file, or it is damaged. `take` sees no task.
void ReadLiveState(const std::string& folder, const std::function<void(const LogLineRecord& line)>& take);

}  // namespace muster
