#include "muster/cluster/identity/rank_cluster.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

constexpr int kFirstPort = 20000;
constexpr int kEndOfPorts = 32768;
constexpr int kLeastBlock = 64;

}  // namespace

TaskId TaskOfRank(int rank, int ranks, int ps) {
  if (rank == 0) return {kChiefJob, 0};
  if (rank >= ranks - ps) return {kPsJob, rank - (ranks - ps)};
  return {kWorkerJob, rank - 1};
}

int FirstPortOf(uint64_t key, int most_on_a_host) {
  int block = kLeastBlock;
  while (block < most_on_a_host && block < kEndOfPorts - kFirstPort) block *= 2;
  const int blocks = std::max(1, (kEndOfPorts - kFirstPort) / block);
  return kFirstPort + block * static_cast<int>(key % static_cast<uint64_t>(blocks));
}

absl::StatusOr<RankCluster> MakeRankCluster(const std::vector<RankPlace>& places, int own, int ps, uint64_t key,
                                            std::optional<int> first_port) {
  const int ranks = static_cast<int>(places.size());
  if (ps >= ranks)
    return absl::InvalidArgumentError(absl::StrCat("--ps: ", ps, " of ", ranks,
                                                   " tasks would be parameter servers, and none would train; accepted: "
                                                   "0 to ",
                                                   ranks - 1));
  int most = 0;
  for (const RankPlace& place : places) most = std::max(most, place.local + 1);
  RankCluster made{.task = TaskOfRank(own, ranks, ps), .first_port = first_port.value_or(FirstPortOf(key, most))};
  if (made.first_port + most - 1 > 65535)
    return absl::InvalidArgumentError(absl::StrCat("--first_port: ", made.first_port, " leaves no port for ", most,
                                                   " tasks of a host; accepted: 1 to ", 65536 - most));
  for (int rank = 0; rank < ranks; ++rank) {
    const RankPlace& place = places[static_cast<size_t>(rank)];
    RETURN_IF_ERROR(made.cluster.AddTask(TaskOfRank(rank, ranks, ps),
                                         absl::StrCat(place.host, ":", made.first_port + place.local)));
  }
  return made;
}

}  // namespace muster
