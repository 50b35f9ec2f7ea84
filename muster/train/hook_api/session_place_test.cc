#include "muster/train/hook_api/session_place.h"

#include <gmock/gmock.h>

#include <optional>
#include <string>

#include "absl/strings/str_split.h"
#include "muster/base/log.h"
#include "muster/base/wrong_configuration.h"
#include "muster/train/testing/training_process.h"

namespace muster::session_place_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::Not;

ModelBinding Bind(std::vector<VariableSpec> variables, int num_ps, const Partitioning& partitioning = {}) {
  PlacementResult placement = *PlaceVariables(variables, num_ps, Placement::kRoundRobin, partitioning);
  return {std::move(variables), std::move(placement), OptimizerSpec(RuleSpec{}), {}};
}

ModelBinding Network(int num_ps) {
  return Bind({{.name = "hidden.weight", .shape = {100, 4}}, {.name = "hidden.bias", .shape = {4}}, {.name = "scale"}},
              num_ps);
}

std::vector<std::string> Lines(const std::string& table) { return absl::StrSplit(table, '\n', absl::SkipEmpty()); }

const SessionPlace kWorkerWithGpu = {
    .task = {"worker", 1}, .device = {true, 0}, .ps = {{"ps", 0}, {"ps", 3}}, .peers = {}};

TEST(DevicePlacementTableTest, EveryVariableAndModuleWithTaskDeviceAndBytes) {
  EXPECT_THAT(Lines(DevicePlacementTable(Network(2), kWorkerWithGpu)),
              ElementsAre("variable       task  device                                 bytes",
                          "hidden.weight  ps:0  /job:ps/replica:0/task:0/device:CPU:0   1600",
                          "hidden.bias    ps:3  /job:ps/replica:0/task:3/device:CPU:0     16",
                          "scale          ps:0  /job:ps/replica:0/task:0/device:CPU:0      4",
                          "module       task      device                                     bytes",
                          "hidden       worker:1  /job:worker/replica:0/task:1/device:GPU:0   1616",
                          "(the model)  worker:1  /job:worker/replica:0/task:1/device:GPU:0      4"));
}

TEST(DevicePlacementTableTest, SlicesAreNumberedAndATableOfRowsHasNoCopyOnTheWorker) {
  const ModelBinding binding =
      Bind({{.name = "words.weight", .shape = {10, 2}, .kind = VariableKind::kRows}, {.name = "w", .shape = {4, 2}}}, 2,
           {.kind = Partitioning::Kind::kFixed, .shards = 2});
  const std::string table = DevicePlacementTable(binding, kWorkerWithGpu);
  EXPECT_THAT(table, AllOf(HasSubstr("words.weight [0/2]  ps:0"), HasSubstr("words.weight [1/2]  ps:3"),
                           HasSubstr("w [1/2]             ps:3")));
  EXPECT_THAT(table, HasSubstr("words        worker:1  /job:worker/replica:0/task:1/device:GPU:0      0\n"));
}

TEST(DevicePlacementTableTest, WithoutPsTheTaskHoldsEverything) {
  const std::string table = DevicePlacementTable(Network(1), {.task = {"worker", 0}});
  EXPECT_THAT(table, AllOf(HasSubstr("hidden.weight  worker:0  /job:worker/replica:0/task:0/device:CPU:0   1600"),
                           Not(HasSubstr("ps:"))));
}

TEST(CheckDeviceFiltersTest, ThoseOfEstimatorsAreFine) {
  EXPECT_EQ(CheckDeviceFilters({}, Network(2), kWorkerWithGpu), absl::OkStatus());
  EXPECT_EQ(CheckDeviceFilters({"/job:ps", "/job:worker/task:1"}, Network(2), kWorkerWithGpu), absl::OkStatus());
  // The task itself needs no filter.
  EXPECT_EQ(CheckDeviceFilters({"/job:ps"}, Network(2), kWorkerWithGpu), absl::OkStatus());
}

TEST(CheckDeviceFiltersTest, APsThatHoldsVariablesIsNeededAndNamed) {
  const absl::Status status = CheckDeviceFilters({"/job:ps/task:0", "/job:worker"}, Network(2), kWorkerWithGpu);
  EXPECT_TRUE(IsWrongConfiguration(status)) << status;
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("[/job:ps/task:0, /job:worker] leave out ps:3"),
                                                   HasSubstr("variable 'hidden.bias'"), HasSubstr("/job:ps/task:3")));
  EXPECT_THAT(std::string(CheckDeviceFilters({"/job:ps/device:GPU:*"}, Network(2), kWorkerWithGpu).message()),
              HasSubstr("leave out ps:0, which holds variable 'hidden.weight' and 1 more"));
}

TEST(CheckDeviceFiltersTest, APsWithoutVariablesIsNeededOnlyWhereItCountsTheSteps) {
  const SessionPlace three = {
      .task = {"worker", 0}, .device = {}, .ps = {{"ps", 0}, {"ps", 1}, {"ps", 2}}, .peers = {}};
  ModelBinding on_second = Bind({{.name = "w", .device = "/job:ps/task:1"}}, 3);
  EXPECT_EQ(CheckDeviceFilters({"/job:ps/task:0", "/job:ps/task:1"}, on_second, three), absl::OkStatus());
  EXPECT_THAT(std::string(CheckDeviceFilters({"/job:ps/task:1"}, on_second, three).message()),
              HasSubstr("leave out ps:0, which counts the global step"));
}

TEST(CheckDeviceFiltersTest, WithoutPsEveryWorkerIsNeeded) {
  const SessionPlace place = {.task = {"worker", 1}, .device = {}, .ps = {}, .peers = {{"worker", 0}, {"worker", 1}}};
  EXPECT_EQ(CheckDeviceFilters({"/job:worker"}, Network(1), place), absl::OkStatus());
  EXPECT_EQ(CheckDeviceFilters({"/job:worker/task:0"}, Network(1), place), absl::OkStatus());
  EXPECT_THAT(std::string(CheckDeviceFilters({"/job:ps", "/job:worker/task:1"}, Network(1), place).message()),
              HasSubstr("leave out worker:0"));
}

// The session applies the functions of this file to its config.
class SessionWithConfigTest : public ::testing::Test {
 protected:
  SessionEnvironment Environment() {
    SessionEnvironment environment = chief_.Environment();
    environment.place = {.task = {"chief", 0}, .device = {}, .ps = {{"ps", 0}, {"ps", 1}}, .peers = {}};
    return environment;
  }

  SimulatedStore store_{2, {"chief:0"}, {.lease = absl::Hours(100)}, nullptr};
  TrainingProcess chief_{store_, "chief:0"};
};

TEST_F(SessionWithConfigTest, LogsThePlacementOnceWhenItIsCreated) {
  Session session(Environment(), {.config = {.log_device_placement = true}}, {});
  ::testing::internal::CaptureStderr();
  SetUpLog("");
  EXPECT_EQ(session.Start(), absl::OkStatus());
  const std::string started = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(started, AllOf(HasSubstr("device placement of chief:0"),
                             HasSubstr("w         ps:0  /job:ps/replica:0/task:0/device:CPU:0     12"),
                             HasSubstr("b         ps:1  /job:ps/replica:0/task:1/device:CPU:0      8")));
  ::testing::internal::CaptureStderr();
  SetUpLog("");
  EXPECT_EQ(session.Run(), absl::OkStatus());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), Not(HasSubstr("device placement")));
  EXPECT_EQ(session.Close(), absl::OkStatus());
}

TEST_F(SessionWithConfigTest, SaysNothingUnasked) {
  Session session(Environment(), {}, {});
  ::testing::internal::CaptureStderr();
  SetUpLog("");
  EXPECT_EQ(session.Start(), absl::OkStatus());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), Not(HasSubstr("device placement")));
  EXPECT_EQ(session.Close(), absl::OkStatus());
}

TEST_F(SessionWithConfigTest, ABadConfigEndsItBeforeAnythingIsAsked) {
  for (const SessionConfig& config :
       {SessionConfig{.intra_op_parallelism_threads = -1}, SessionConfig{.device_filters = {"/job:ps/task:1"}}}) {
    Session session(Environment(), {.config = config}, {});
    EXPECT_FALSE(session.Start().ok());
    EXPECT_EQ(chief_.joined, 0);
  }
}

TEST(SessionPlaceTest, AChiefThatTheClusterDoesNotKnowIsWarnedOf) {
  const auto log_of = [](const std::optional<bool>& is_chief, bool cluster_says) {
    ::testing::internal::CaptureStderr();
    SetUpLog("");
    WarnOfWrongChief(is_chief, cluster_says, {"worker", 1});
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(log_of(std::nullopt, false), "");
  EXPECT_EQ(log_of(true, true), "");
  EXPECT_THAT(log_of(true, false),
              ::testing::HasSubstr("is_chief = true, but by the cluster worker:1 is not the chief"));
  EXPECT_THAT(log_of(false, true), ::testing::HasSubstr("is_chief = false, but by the cluster worker:1 is the chief"));
  EXPECT_THAT(log_of(false, true), ::testing::HasSubstr("leave is_chief unset"));
}

}  // namespace
}  // namespace muster::session_place_test
