#include "muster/launch/hosts/placement.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster::placement_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty;

// A job with a chief, an evaluator and that many ps and workers.
PlacementRequest Job(int ps, int workers, std::vector<Host> hosts, int gpus_of_worker = 0) {
  PlacementRequest request;
  for (int i = 0; i < ps; ++i) request.tasks.push_back({{kPsJob, i}});
  request.tasks.push_back({{kChiefJob, 0}, gpus_of_worker});
  for (int i = 0; i < workers; ++i) request.tasks.push_back({{kWorkerJob, i}, gpus_of_worker});
  request.tasks.push_back({{kEvaluatorJob, 0}});
  request.hosts = std::move(hosts);
  return request;
}

// Returns "TASK HOST, …" in the order of names.
std::string Shown(const PlacementRequest& request) {
  const auto placed = PlaceOnHosts(request);
  if (!placed.ok()) return std::string(placed.status().message());
  return absl::StrJoin(*placed, ", ", [](std::string* out, const auto& one) {
    absl::StrAppend(out, one.first.ToString(), " ", one.second);
  });
}

TEST(PlacementTest, TasksAreDealtOutInTurn) {
  EXPECT_EQ(Shown(Job(2, 3, {{"a"}, {"b"}})),
            "chief:0 a, evaluator:0 a, ps:0 a, ps:1 b, worker:0 b, worker:1 a, worker:2 b");
}

TEST(PlacementTest, OneHostGetsAll) {
  EXPECT_EQ(Shown(Job(1, 1, {{"a"}})), "chief:0 a, evaluator:0 a, ps:0 a, worker:0 a");
}

TEST(PlacementTest, AFullHostIsPassedOver) {
  EXPECT_EQ(Shown(Job(1, 3, {{.name = "a", .slots = 1}, {.name = "b", .slots = 3}})),
            "chief:0 a, evaluator:0 a, ps:0 a, worker:0 b, worker:1 b, worker:2 b");
}

TEST(PlacementTest, TheEvaluatorGoesWhereTheFewestAre) {
  EXPECT_THAT(Shown(Job(1, 1, {{"a"}, {"b"}, {"c"}})), HasSubstr("evaluator:0 c"));
}

TEST(PlacementTest, TooFewSlotsAreAnErrorWithBothNumbers) {
  EXPECT_EQ(
      Shown(Job(1, 3, {{.name = "a", .slots = 1}, {.name = "b", .slots = 2}})),
      "no slot is left for worker:2: 4 tasks train and the 2 hosts have 3 slots; take fewer workers, more hosts or "
      "more slots");
}

TEST(PlacementTest, GpusAreCountedToo) {
  EXPECT_EQ(Shown(Job(1, 2, {{.name = "a", .gpus = 0}, {.name = "b", .gpus = 3}}, 1)),
            "chief:0 b, evaluator:0 a, ps:0 a, worker:0 b, worker:1 b");
  EXPECT_EQ(
      Shown(Job(1, 3, {{.name = "a", .gpus = 0}, {.name = "b", .gpus = 3}}, 1)),
      "no host has room for worker:2, which needs 1 GPU: all tasks need 4 and the 2 hosts have 3 GPUs; take fewer "
      "workers or more hosts");
}

TEST(PlacementTest, AJobGoesWhereTheUserWantsIt) {
  PlacementRequest request = Job(1, 3, {{.name = "a", .slots = 1}, {"b"}, {"c"}});
  request.explicit_hosts = {{kWorkerJob, {"b", "c"}}, {kPsJob, {"c"}}};
  EXPECT_EQ(Shown(request), "chief:0 a, evaluator:0 a, ps:0 c, worker:0 b, worker:1 c, worker:2 b");
}

TEST(PlacementTest, AWrongPlacementIsNamed) {
  PlacementRequest request = Job(1, 1, {{"alpha"}, {"beta"}});
  request.explicit_hosts = {{kWorkerJob, {"betta"}}};
  EXPECT_EQ(Shown(request), "placement: worker: 'betta' is none of the hosts (nearest: beta)");
  request.explicit_hosts = {{"wroker", {"beta"}}};
  EXPECT_EQ(Shown(request), "placement: the job 'wroker' has no tasks (nearest: worker)");
  request.explicit_hosts = {{kWorkerJob, {}}};
  EXPECT_EQ(Shown(request), "placement: worker has no hosts");
  EXPECT_THAT(Shown(Job(1, 1, {})), HasSubstr("no host to run on"));
}

MoveRequest ToMove(const TaskToPlace& task, std::vector<Host> hosts) {
  return {.task = task,
          .hosts = std::move(hosts),
          .present = {{{kPsJob, 0}, "a"}, {{kWorkerJob, 0}, "a"}, {{kWorkerJob, 1}, "b"}, {{kWorkerJob, 2}, "lost"}},
          .gpus = {{{kWorkerJob, 1}, 1}}};
}

TEST(PlaceElsewhereTest, TheHostWithTheFewestTasksGetsIt) {
  const TaskToPlace worker{{kWorkerJob, 2}};
  EXPECT_EQ(PlaceElsewhere(ToMove(worker, {{"a"}, {"b"}})), "b");
  EXPECT_EQ(PlaceElsewhere(ToMove(worker, {{"a"}, {"b"}, {"c"}, {"d"}})), "c");
  EXPECT_EQ(PlaceElsewhere(ToMove(worker, {})), std::nullopt);
}

TEST(PlaceElsewhereTest, OnlyTrainersNeedASlot) {
  const std::vector<Host> full = {{.name = "a", .slots = 1}, {.name = "b", .slots = 1}};
  EXPECT_EQ(PlaceElsewhere(ToMove({{kWorkerJob, 2}}, full)), std::nullopt);
  EXPECT_EQ(PlaceElsewhere(ToMove({{kPsJob, 1}}, full)), "b");
  EXPECT_EQ(PlaceElsewhere(ToMove({{kWorkerJob, 2}}, {{.name = "a", .slots = 2}})), "a");
}

TEST(PlaceElsewhereTest, GpusAreTakenOnlyWhereNobodyHasSome) {
  EXPECT_EQ(PlaceElsewhere(ToMove({{kWorkerJob, 2}, 2}, {{.name = "b", .gpus = 4}, {.name = "a", .gpus = 2}})), "a");
  EXPECT_EQ(PlaceElsewhere(ToMove({{kWorkerJob, 2}, 2}, {{.name = "a"}})), std::nullopt) << "nobody knows";
  EXPECT_EQ(PlaceElsewhere(ToMove({{kWorkerJob, 2}, 2}, {{.name = "a", .gpus = 1}})), std::nullopt);
}

TEST(DispensableHostsTest, AreThoseWithTheEvaluatorAlone) {
  const TaskId ps{kPsJob, 0}, worker{kWorkerJob, 0}, evaluator{kEvaluatorJob, 0};
  EXPECT_THAT(DispensableHosts({{worker, "a"}, {ps, "b"}, {evaluator, "c"}}), ElementsAre("c"));
  EXPECT_THAT(DispensableHosts({{worker, "a"}, {ps, "b"}, {evaluator, "b"}}), IsEmpty());
  EXPECT_THAT(DispensableHosts({}), IsEmpty());
}

}  // namespace
}  // namespace muster::placement_test
