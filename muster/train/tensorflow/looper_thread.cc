#include "muster/train/tensorflow/looper_thread.h"

#include <utility>

#include "muster/base/status_macros.h"

namespace muster {
namespace {

absl::Status Loop(Coordinator& coordinator, const LooperThreadOptions& options,
                  const std::function<absl::Status()>& run_loop) {
  RETURN_IF_ERROR(options.start_loop());
  absl::Time next = options.clock->Now();
  while (!coordinator.WaitForStop(next - options.clock->Now())) {
    // Adds whole intervals to the start, so that the length of the calls doesn't accumulate (as TensorFlow's
    // timer_interval).
    next += options.interval;
    RETURN_IF_ERROR(run_loop());
  }
  return options.stop_loop();
}

}  // namespace

LooperThread::LooperThread(Coordinator& coordinator, LooperThreadOptions options,
                           std::function<absl::Status()> run_loop)
    : thread_(coordinator, options.name, [&coordinator, options, run_loop = std::move(run_loop)] {
        return Loop(coordinator, options, run_loop);
      }) {}

}  // namespace muster
