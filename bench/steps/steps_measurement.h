// One measurement of `bench steps`: new processes train one way for a while.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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
  std::vector<MeasuredWorker> workers;  // empty: something failed, and has been shown
  CpuTime ps_cpu;                       // while worker 0 was measured

  // Minibatches a second of all workers together.
  double rate() const;
};

// `folder` is emptied first, and then holds what the processes have written.
StepsSample MeasureSteps(const StepsWay& way, const StepsSettings& settings, const std::string& folder);

// The part of the trace that a task of a traced way has written there: "worker" or "ps".
std::string TracePart(const StepsWay& way, const std::string& folder, const std::string& job, int index);

// The ways in turns, in so many rounds, every other one backwards: on a machine that is slower for whoever comes after
// a pause, or gets slower within a round, none gains by its place. Of each way the rates of the rounds; 0: it failed.
std::vector<std::vector<double>> MeasureInTurns(const std::vector<StepsWay>& ways, int rounds,
                                                const StepsSettings& settings, const std::string& folder);

}  // namespace muster::bench
