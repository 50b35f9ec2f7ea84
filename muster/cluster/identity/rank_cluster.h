// The cluster of tasks that only have numbers and places, as srun and torchrun start them: which has which role, and
// where it listens. Every task computes the same from its own environment, because without a launcher nobody can tell
// the others a port that was found free. Pure functions, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/cluster/cluster_spec.h"
#include "muster/cluster/task_id.h"

namespace muster {

struct RankPlace {
  std::string host;
  int local = 0;  // the number of the task among those on its host, from 0
};

struct RankCluster {
  ClusterSpec cluster;
  TaskId task;         // of this process
  int first_port = 0;  // a task's port is this and its number on its host
};

// Task 0 is the chief, the last `ps` are the parameter servers, the others are workers, each in order.
TaskId TaskOfRank(int rank, int ranks, int ps);

// Returns a port from 20000, below the ports that systems give to connections (32768 to 60999): a block of 64 for each
// value of `key` in turn, or of a larger power of two if one host has more tasks, up to 4096. 199 neighbouring keys
// have different blocks of 64.
int FirstPortOf(uint64_t key, int most_on_a_host);

// `first_port`: the user's own, instead of one for `key`. InvalidArgument: as many ps as tasks, ports above 65535, or a
// host that is no name.
absl::StatusOr<RankCluster> MakeRankCluster(const std::vector<RankPlace>& places, int own, int ps, uint64_t key,
                                            std::optional<int> first_port);

}  // namespace muster
