// A world that `./dev simulate` can search: what a seed means there, how one run of it goes, and how a failing one is
// made smaller. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/sim/fault_schedule.h"

namespace muster {

class SimulatedKind {
 public:
  struct Outcome {
    std::optional<std::string> violation;
    uint64_t events = 0;
    int64_t work = 0;  // in the unit of `unit()`
    absl::Duration simulated;
  };
  using Listener = std::function<void(absl::Time when, const std::string& line)>;

  virtual ~SimulatedKind() = default;
  // "pushes": what a run does.
  virtual std::string unit() const = 0;
  // Runs what `reduction` leaves of the seed's schedule. `listener` may be empty.
  virtual Outcome Run(uint64_t seed, const ScheduleReduction& reduction, const Listener& listener) = 0;
  // Returns the text of that schedule.
  virtual std::string Text(uint64_t seed, const ScheduleReduction& reduction) const = 0;
  // Returns a reduction that can't be extended; `fails` runs one.
  virtual ScheduleReduction Shrink(uint64_t seed, const ScheduleReduction& start,
                                   const std::function<bool(const ScheduleReduction&)>& fails) const = 0;
};

// "cluster" is the store with its clients and sessions, "agents" supervisors with their agents. `plant`: a bug to find;
// empty: none. InvalidArgument lists what there is.
absl::StatusOr<std::unique_ptr<SimulatedKind>> MakeSimulatedKind(const std::string& world, const std::string& plant);

}  // namespace muster
