// One measurement of `bench steps`: new processes train one way for a while.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/steps/steps_lines.h"
#include "bench/steps/steps_way.h"
#include "bench/support/process.h"

namespace muster::bench {

// What a worker has done while it was measured (meter.h).
struct MeasuredWorker {
  double steps = 0;
  double seconds = 0;
  int64_t begin = 0;  // nanoseconds of the host's monotonic clock
  CpuTime cpu;
};

struct StepsSample {
  std::vector<MeasuredWorker> workers;  // empty: something failed, which has been shown
  CpuTime ps_cpu;                       // while worker 0 was measured

  // Returns the minibatches per second of all workers together.
  double rate() const;
};

// Empties `folder` first; afterwards it holds what the processes have written.
StepsSample MeasureSteps(const StepsWay& way, const StepsSettings& settings, const std::string& folder);

// Returns the trace part that a task ("worker" or "ps") of a traced way has written there.
std::string TracePart(const StepsWay& way, const std::string& folder, const std::string& job, int index);

// Approximate minutes for so many measurements, with starting, warming up and ending their processes.
double MinutesFor(size_t measurements, const StepsSettings& settings);

// Measures the ways in turns, every other round backwards: on a machine that is slower after a pause, or gets slower
// within a round, no way gains by its place. Returns a line for each way.
std::vector<StepsLine> MeasureInTurns(const std::vector<StepsWay>& ways, int rounds, const StepsSettings& settings,
                                      const std::string& folder);

}  // namespace muster::bench
