// How a worker of `bench steps` and `bench peers` measures itself; bench/peers/measure.py does the same for the
// frameworks in Python. The workers of a run meet by files in the run's folder, warm up together and begin the
// measurement together. Each leaves result.TASK.json there: {"steps", "seconds", "begin_ns" (of the monotonic clock),
// "cpu" (its processor time in these seconds: {"user", "system"}), "ps_cpu" (the same for the ps)} or, if a number of
// steps was asked for, {"losses"}.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

namespace muster::bench {

struct MeterOptions {
  std::string folder;  // of this run only
  int task = 0;
  int workers = 1;
  double seconds = 2;
  int64_t steps = 0;     // > 0: this many steps, with the loss of each
  bool in_step = false;  // no worker can step without the others: all take the same number, agreed on after the warm-up
  pid_t ps = 0;          // also takes this process's processor time; 0: none
};

// One step on this worker's next minibatch. Returns its loss if `want_loss`; otherwise any value that costs nothing.
using MeteredStep = std::function<double(bool want_loss)>;

// Throws Error if another worker doesn't come.
void Measure(const MeterOptions& options, const MeteredStep& step);

}  // namespace muster::bench
