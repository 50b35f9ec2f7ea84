// Another system on which muster runs experiments, for the benchmark of what they take beyond that system's own start.
// Used by one thread.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bench/support/process.h"

namespace muster::bench {

class OnEngine {
 public:
  virtual ~OnEngine() = default;
  // How many tasks run, each on a node of its own.
  virtual int tasks() const = 0;
  // Returns the milliseconds that a job of the system's own takes, until its program has run on as many nodes.
  virtual absl::StatusOr<double> OfItself() const = 0;
  // Returns the command of an experiment with these tasks, and what it runs with.
  virtual std::vector<std::string> Train(const std::string& muster) const = 0;
  virtual EnvironmentChanges environment() const = 0;
};

// Returns how long it is since `start` that a program has written the time into a file, by Python's time.time(), in
// milliseconds. Internal: it hasn't.
absl::StatusOr<double> MillisecondsUntilWritten(const std::string& file, absl::Time start);

}  // namespace muster::bench
