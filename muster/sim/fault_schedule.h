// The definition of one simulated run: the cluster, the work, the network and the faults, all drawn from one seed; and
// how a run is reduced in the search for the smallest one that still fails. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/transport/simulated/simulated_network.h"

namespace muster {

enum class ScheduledFaultKind {
  kKillWorker,     // starts it again after `lasts` (InfiniteDuration: never)
  kKillPs,         // the same
  kKillPsInside,   // the same, during an update or a recovery: at the `passes`-th point that it passes
  kPauseWorker,    // SIGSTOP for `lasts`
  kPausePs,        // the same
  kHangWorker,     // its training thread hangs for `lasts`, while its heartbeats go on
  kReplaceWorker,  // pauses it for `lasts`; `then` after the start another process is started as the same task
  kCut,            // breaks the connections of worker and ps; they notice after `lasts` and `then`
  kPart,           // stops all messages between worker and ps for `lasts`
  kDeafWorker,     // the same, but only those from the ps
  kMuteWorker,     // the same, but only those to the ps
  kStopWorker,     // Ctrl-C
  kShutdown,       // tells every ps to end
};

struct ScheduledFault {
  ScheduledFaultKind kind = ScheduledFaultKind::kCut;
  absl::Duration at;
  int worker = 0;
  int ps = 0;
  absl::Duration lasts;
  absl::Duration then;
  uint64_t passes = 0;
  bool forgets = false;  // the killed ps's memory is lost

  std::string ToString() const;
};

// How the workers of a schedule train.
enum class ScheduledWork {
  kAsynchronous,
  kWindows,           // asynchronous, several minibatches per push (the commit pipeline)
  kOrdered,           // the same, but workers push in turn (deterministic)
  kSynchronous,       // through the gate: `replicas` of all workers
  kBoundedStaleness,  // by clocks
};

// The factor of a push with windows.
enum class ScheduledScale {
  kNone,
  kMean,       // 1 / its number of minibatches
  kStaleness,  // 1 / (1 + its staleness), by each ps
};

struct Schedule {
  uint64_t seed = 0;
  int num_ps = 1;
  int num_workers = 1;  // including the chief
  int64_t last_step = 10;
  int64_t save_steps = 0;   // 0: no checkpoints
  bool ps_see_disk = true;  // false: their parts go through the chief
  int64_t rows = 1;         // of the first variable; 600 take two stripes
  int64_t shards = 1;
  ScheduledWork work = ScheduledWork::kAsynchronous;
  int replicas = 1;  // synchronous: N
  bool elastic = true;
  bool in_turn = false;  // synchronous, not elastic, N = M: they contribute in the workers' order
  int staleness_bound = 0;
  uint32_t window = 1;          // minibatches per push; for kWindows and kOrdered
  bool differences = false;     // the push has the change of the worker's own values, else the sum of gradients
  int64_t own_minibatches = 0;  // a process ends after this many; 0: with the last step
  ScheduledScale scale = ScheduledScale::kNone;  // for kWindows and kOrdered
  bool barriers = false;   // one of all before the first step; if NobodyWaits, also an elastic one after the last
  int restarts = 0;        // how often a failed task is started again
  absl::Duration compute;  // of a minibatch, at most
  bool in_parts = false;   // asynchronous: each stripe's gradient is pushed alone, while others are computed
  NetworkOptions network;
  std::vector<ScheduledFault> faults;

  // Returns true if no worker waits for others, neither in a gate nor for its turn.
  bool NobodyWaits() const { return work == ScheduledWork::kAsynchronous || work == ScheduledWork::kWindows; }
  // Returns true if every task must end well, whatever the timing, because nothing is lost for good.
  bool MustSucceed() const;
  std::string ToString() const;
};

Schedule DrawSchedule(uint64_t seed);

// Limits that reduce a schedule: the options of `muster_simulate`.
struct ScheduleReduction {
  std::optional<int> num_ps;
  std::optional<int> num_workers;
  std::optional<int64_t> last_step;
  std::optional<std::vector<int>> faults;  // by their numbers in the drawn schedule

  Schedule Apply(Schedule schedule) const;
  // Returns " --workers 2 --faults 0,3".
  std::string ToFlags() const;
};

}  // namespace muster
