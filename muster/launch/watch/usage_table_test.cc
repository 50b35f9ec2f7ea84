#include "muster/launch/watch/usage_table.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace muster::usage_table_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::Not;

constexpr int64_t kGb = int64_t{1} << 30;
constexpr size_t kWide = 200;

UsageRow Running() {
  UsageRow row = {.name = "4.worker.1", .project = "demo", .state = RunState::kRunning};
  row.usage = TaskUsage{.cpu_percent = 153.24, .mem_bytes = kGb / 2, .mem_limit = 16 * kGb};
  return row;
}

TEST(UsageTable, ColumnsWithoutAGpuAndWithoutReading) {
  const UsageRow waiting = {.name = "4.ps.1", .project = "demo", .state = RunState::kPending};
  EXPECT_THAT(
      UsageTable({Running(), waiting}, kWide),
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
  EXPECT_THAT(UsageTable({row}, kWide),
              ElementsAre(HasSubstr("  STEPS/S      LOSS  STALENESS"),
                          HasSubstr("   37.0       25.0      20.0 / 80.0 GB    812.3  0.000125        1.0")));
  row.usage->gpu_percent = std::nullopt;
  row.usage->gpu_mem_bytes = std::nullopt;
  EXPECT_THAT(UsageTable({row}, kWide)[1], HasSubstr("    N/A        N/A                 N/A  "));
}

TEST(UsageTable, FitsTheTerminal) {
  UsageRow row = Running();
  EXPECT_THAT(UsageTable({row}, 80), ElementsAre("ID          PROJECT  STATE    CPU %  MEM %  MEM-Used / Total",
                                                 "4.worker.1  demo     RUNNING  153.2    3.1     0.5 / 16.0 GB"));
  row.name = "1234.12.worker.100";
  row.project = "a-project-with-a-long-name";
  row.usage->gpus = 8;
  row.usage->gpu_percent = 100;
  row.usage->gpu_mem_bytes = 600 * kGb;
  row.usage->gpu_mem_total = 640 * kGb;
  row.progress = {.steps_per_second = 812.34, .loss = 0.000125, .staleness = 1, .step = 9};
  const std::vector<std::string> lines = UsageTable({row}, 80);
  for (const std::string& line : lines) EXPECT_LE(line.size(), 80U) << line;
  EXPECT_THAT(lines[0], AllOf(HasSubstr("CPU %"), HasSubstr("MEM GB"), HasSubstr("GPU %"), HasSubstr("LOSS")));
}

TEST(UsageTable, TheHeadingsStayAsTheTableBeforeHadThem) {
  UsageShape shape;
  UsageRow row = Running();
  row.project = "a-project-with-a-long-name";
  row.progress = {.steps_per_second = 812.34, .loss = 0.000125, .staleness = 1, .step = 9};
  const std::string narrow = UsageTable({row}, 80, &shape)[0];
  EXPECT_THAT(narrow, AllOf(HasSubstr("STEPS/S"), Not(HasSubstr("PROJECT")), Not(HasSubstr("GPU"))));
  const UsageRow idle = {.name = "4.ps.1", .project = "p", .state = RunState::kPending};
  EXPECT_EQ(UsageTable({idle}, 80, &shape)[0].find("PROJECT"), std::string::npos);
  EXPECT_THAT(UsageTable({idle}, 80, &shape)[0], HasSubstr("STEPS/S"));
  EXPECT_THAT(UsageTable({idle}, kWide, &shape)[0], AllOf(HasSubstr("PROJECT"), Not(HasSubstr("STEPS/S"))))
      << "another width is another table";
}

TEST(UsageTable, NamesWithOtherLettersAreAligned) {
  UsageRow row = Running();
  row.project = "größe";
  EXPECT_THAT(UsageTable({row}, kWide)[1], HasSubstr("größe    RUNNING"));
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
