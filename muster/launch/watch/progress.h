// What a program of ours (framework muster) says of its training on its status page (docs/observe.md). Functions
// without state, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace muster {

struct TaskProgress {
  std::optional<double> steps_per_second, loss;
  std::optional<double> staleness;  // the median
  std::optional<int64_t> step;      // the global one

  bool operator==(const TaskProgress&) const = default;
};

// Of what a page serves at /status, a worker's or a ps's; unset fields for what isn't there.
TaskProgress ProgressOfStatus(std::string_view json);

// `status_address`: "127.0.0.1:9100"; empty: none. Unset fields where no page answers; waits 200 ms for each step of
// that. The process must ignore SIGPIPE, for the page may go away meanwhile.
TaskProgress ReadProgress(const std::string& status_address);

}  // namespace muster
