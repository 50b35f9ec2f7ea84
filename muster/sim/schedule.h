// What one simulated run consists of: the cluster, the work, the network and the faults, all drawn from one seed; and
// how a run is made smaller while looking for the smallest that still fails. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/sim/simulated_network.h"

namespace muster {

enum class ScheduledFaultKind {
  kKillWorker,     // and start it again after `lasts` (InfiniteDuration: never)
  kKillPs,         // likewise
  kKillPsInside,   // likewise, in the middle of an update or a recovery: at the `passes`-th point that it passes
  kPauseWorker,    // SIGSTOP for `lasts`
  kPausePs,        // likewise
  kReplaceWorker,  // paused for `lasts`; `then` after its beginning another process is started as the same task
  kCut,            // the connections of worker and ps break; they see it after `lasts` and `then`
  kPart,           // nothing passes between worker and ps for `lasts`
  kStopWorker,     // Ctrl-C
  kShutdown,       // every ps is told to end
};

struct ScheduledFault {
  ScheduledFaultKind kind = ScheduledFaultKind::kCut;
  absl::Duration at;
  int worker = 0;
  int ps = 0;
  absl::Duration lasts;
  absl::Duration then;
  uint64_t passes = 0;
  bool forgets = false;  // nobody kept the killed ps's memory

  std::string ToString() const;
};

// How the workers of a schedule train.
enum class ScheduledWork {
  kAsynchronous,
  kWindows,           // asynchronously, several minibatches a push (the commit pipeline)
  kOrdered,           // likewise, a push of each worker in turn (deterministic)
  kSynchronous,       // through the gate: `replicas` of all workers
  kBoundedStaleness,  // by clocks
};

// What a push with windows is multiplied by.
enum class ScheduledScale {
  kNone,
  kMean,       // 1 / its minibatches
  kStaleness,  // 1 / (1 + its staleness), by each ps
};

struct Schedule {
  uint64_t seed = 0;
  int num_ps = 1;
  int num_workers = 1;  // the chief among them
  int64_t last_step = 10;
  int64_t save_steps = 0;   // 0: no checkpoints
  bool ps_see_disk = true;  // else their parts go through the chief
  int64_t rows = 1;         // of the first variable; 600 make two stripes
  int64_t shards = 1;
  ScheduledWork work = ScheduledWork::kAsynchronous;
  int replicas = 1;  // synchronous: N
  bool elastic = true;
  bool in_turn = false;  // … not elastic, N = M: they contribute in the workers' order
  int staleness_bound = 0;
  uint32_t window = 1;          // minibatches a push; with windows and in order
  bool differences = false;     // … which brings what they have made of the worker's own values; else their sum
  int64_t own_minibatches = 0;  // … a process ends after so many; 0: with the last step
  ScheduledScale scale = ScheduledScale::kNone;  // … with windows and in order
  bool barriers = false;   // one of all before the first step; where NobodyWaits: an elastic one behind the last, too
  int restarts = 0;        // how often a task that failed is started again
  absl::Duration compute;  // of a minibatch, at most
  bool in_parts = false;   // asynchronous: each stripe's gradient is pushed by itself, while others are computed
  NetworkOptions network;
  std::vector<ScheduledFault> faults;

  // Nobody is waited for, neither in a gate nor for a turn.
  bool NobodyWaits() const { return work == ScheduledWork::kAsynchronous || work == ScheduledWork::kWindows; }
  // True if, whatever the times, every task has to end well: nothing is lost for good.
  bool MustSucceed() const;
  std::string ToString() const;
};

Schedule DrawSchedule(uint64_t seed);

// What is left of a schedule: the options of `muster_simulate`.
struct ScheduleReduction {
  std::optional<int> num_ps;
  std::optional<int> num_workers;
  std::optional<int64_t> last_step;
  std::optional<std::vector<int>> faults;  // by number in the drawn schedule

  Schedule Apply(Schedule schedule) const;
  // " --workers 2 --faults 0,3"
  std::string ToFlags() const;
};

}  // namespace muster
