#include "muster/cluster/identity/rank_cluster.h"

#include <gmock/gmock.h>

#include <set>

namespace muster::rank_cluster_test {
namespace {

using ::testing::HasSubstr;

TEST(RankCluster, TheFirstIsTheChiefAndTheLastAreParameterServers) {
  std::vector<std::string> tasks;
  for (int rank = 0; rank < 5; ++rank) tasks.push_back(TaskOfRank(rank, 5, 2).ToString());
  EXPECT_EQ(tasks, (std::vector<std::string>{"chief:0", "worker:0", "worker:1", "ps:0", "ps:1"}));
  EXPECT_EQ(TaskOfRank(1, 2, 1).ToString(), "ps:0");
  EXPECT_EQ(TaskOfRank(1, 2, 0).ToString(), "worker:0");
}

TEST(RankCluster, APortIsTheFirstOneAndTheNumberOnTheHost) {
  const std::vector<RankPlace> places = {{"a", 0}, {"a", 1}, {"b", 0}};
  const RankCluster made = *MakeRankCluster(places, 2, 1, 17, std::nullopt);
  EXPECT_EQ(made.task, (TaskId{kPsJob, 0}));
  EXPECT_EQ(made.first_port, 20000 + 17 * 64);
  EXPECT_EQ(made.cluster.ToJson(), R"({"chief":["a:21088"],"ps":["b:21088"],"worker":["a:21089"]})");
  EXPECT_EQ(MakeRankCluster(places, 0, 0, 17, 4000)->cluster.ToJson(),
            R"({"chief":["a:4000"],"worker":["a:4001","b:4000"]})");
}

TEST(RankCluster, PortsStayBelowThoseOfConnections) {
  for (const int most : {1, 64, 65, 128, 1000, 4096}) {
    for (uint64_t key = 0; key < 1000; ++key) {
      EXPECT_GE(FirstPortOf(key, most), 20000);
      EXPECT_LT(FirstPortOf(key, most) + most - 1, 32768);
    }
  }
  std::set<int> blocks;
  for (uint64_t job = 1234; job < 1234 + 199; ++job) blocks.insert(FirstPortOf(job, 64));
  EXPECT_EQ(blocks.size(), 199u);
}

TEST(RankCluster, WhatDoesNotFitIsRefused) {
  const std::vector<RankPlace> places = {{"a", 0}, {"a", 1}};
  for (const int ps : {2, 3})
    EXPECT_THAT(MakeRankCluster(places, 0, ps, 0, std::nullopt).status().message(),
                HasSubstr("none would train; accepted: 0 to 1"));
  EXPECT_THAT(MakeRankCluster(places, 0, 0, 0, 65535).status().message(), HasSubstr("accepted: 1 to 65534"));
  EXPECT_TRUE(MakeRankCluster(places, 0, 0, 0, 65534).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(MakeRankCluster({{"-", 0}}, 0, 0, 0, 1).status()));
}

}  // namespace
}  // namespace muster::rank_cluster_test
