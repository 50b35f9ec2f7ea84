// How a worker of `bench steps` and `bench peers` measures itself; bench/peers/measure.py is the same for the
// frameworks in Python. The workers of a run meet by files in the run's folder, warm up together, begin the measurement
// together, and each leaves result.TASK.json there: {"steps", "seconds", "begin_ns" (of the monotonic clock), "cpu"
// (its processor time in these seconds: {"user", "system"}), "ps_cpu" (likewise, of the ps)} or, where a number of
// steps was asked for, {"losses"}.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

namespace muster::bench {

struct MeterOptions {
  std::string folder;  // of this run alone
  int task = 0;
  int workers = 1;
  double seconds = 2;
  int64_t steps = 0;     // > 0: so many steps, and the loss of each
  bool in_step = false;  // no worker can take a step without the others: all take as many, agreed on after the warm-up
  pid_t ps = 0;          // whose processor time is taken too; 0: nobody's
};

// One step on this worker's next minibatch. `want_loss`: its loss; otherwise whatever costs nothing.
using MeteredStep = std::function<double(bool want_loss)>;

// Throws Error: another worker doesn't come.
void Measure(const MeterOptions& options, const MeteredStep& step);

}  // namespace muster::bench
