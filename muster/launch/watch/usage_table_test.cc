#include "muster/launch/watch/usage_table.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>

namespace muster::usage_table_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::Not;

constexpr int64_t kGb = int64_t{1} << 30;

UsageRow Running() {
  UsageRow row = {.name = "4.worker.1", .project = "demo", .state = RunState::kRunning};
  row.usage = TaskUsage{.cpu_percent = 153.24, .mem_bytes = kGb / 2, .mem_limit = 16 * kGb};
  return row;
}

TEST(UsageTable, ColumnsWithoutAGpuAndWithoutReading) {
  const UsageRow waiting = {.name = "4.ps.1", .project = "demo", .state = RunState::kPending};
  EXPECT_THAT(
      UsageTable({Running(), waiting}),
      ElementsAre(
          "ID          PROJECT  STATE    CPU %  MEM %  MEM-Used / Total  GPU %  GPU-MEM %  GPU-MEM Used/Total",
          "4.worker.1  demo     RUNNING  153.2    3.1     0.5 / 16.0 GB    N/A        N/A                 N/A",
          "4.ps.1      demo     PENDING      -      -                 -      -          -                   -"));
}

TEST(UsageTable, GpusAndProgressHaveTheirColumns) {
  UsageRow row = Running();
  row.usage->gpus = 1;
  row.usage->gpu_percent = 37;
  row.usage->gpu_mem_bytes = 20 * kGb;
  row.usage->gpu_mem_total = 80 * kGb;
  row.progress = {.steps_per_second = 812.34, .loss = 0.000125, .staleness = 1, .step = 9};
  EXPECT_THAT(UsageTable({row}),
              ElementsAre(HasSubstr("  STEPS/S      LOSS  STALENESS"),
                          HasSubstr("   37.0       25.0      20.0 / 80.0 GB    812.3  0.000125        1.0")));
  row.usage->gpu_percent = std::nullopt;
  row.usage->gpu_mem_bytes = std::nullopt;
  EXPECT_THAT(UsageTable({row})[1], HasSubstr("    N/A        N/A                 N/A  "));
}

TEST(UsageTable, NamesWithOtherLettersAreAligned) {
  UsageRow row = Running();
  row.project = "größe";
  EXPECT_THAT(UsageTable({row})[1], HasSubstr("größe    RUNNING"));
}

TEST(UsageTable, JsonIsOneLineWithNullForWhatIsNotKnown) {
  UsageRow row = Running();
  row.progress.step = 9;
  const std::string text = UsageJson({row, {.name = "4.ps.1"}}, absl::FromUnixSeconds(0));
  EXPECT_THAT(text, Not(HasSubstr("\n")));
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["time"], "1970-01-01T00:00:00Z");
  const auto& task = json["tasks"][0];
  EXPECT_EQ(task["id"], "4.worker.1");
  EXPECT_EQ(task["state"], "RUNNING");
  EXPECT_EQ(task["mem_bytes"], kGb / 2);
  EXPECT_EQ(task["global_step"], 9);
  EXPECT_TRUE(task["gpu_percent"].is_null());
  EXPECT_TRUE(task["loss"].is_null());
  EXPECT_TRUE(json["tasks"][1]["mem_bytes"].is_null());
}

}  // namespace
}  // namespace muster::usage_table_test
