// Training over the executors of a real Spark.
#include <gmock/gmock.h>
#include <unistd.h>

#include <array>
#include <string>

#include "absl/strings/str_cat.h"
#include "muster/base/testing/built_at.h"
#include "tests/process/spark/spark_experiment.h"

namespace muster::spark_training_test {
namespace {

using ::testing::AllOf, ::testing::ContainsRegex, ::testing::HasSubstr, ::testing::Not;

TEST_F(SparkExperiment, TrainsOverTwoExecutorsAndItsLogsOutliveThem) {
  Write("muster.yml",
        absl::StrCat("project: toy\ntrain:\n  framework: muster\n  muster: {distributed: {ps: 1, worker: 2}}\n"
                     "  run: ",
                     BinFolder(), "/digits --csv=", SourceFolder(),
                     "/examples/data/digits.csv --steps=60 --model_dir=$OUTPUT_DIR\n"));
  const Said said = Muster({"train"});
  EXPECT_EQ(said.exit_code, 0) << said.out << said.err << Logs();
  EXPECT_EQ(StateOf("1"), "FINISHED");
  EXPECT_THAT(said.err, ContainsRegex("experiment 1 is job .+-[0-9]+-[0-9]+ of Spark"));
  EXPECT_THAT(Read("experiments/1/job.out"), HasSubstr("muster: Spark has 2 of 2 slots; dynamic allocation is off"));
  std::array<char, 256> host{};
  ASSERT_EQ(gethostname(host.data(), host.size() - 1), 0);
  EXPECT_THAT(Read("experiments/1/job.out"), HasSubstr(absl::StrCat("has ", host.data(), ", ", host.data(), "-2\n")));
  EXPECT_THAT(Read("experiments/1/job.sh"), AllOf(HasSubstr("#SPARK {"), Not(HasSubstr("TOKEN"))));
  EXPECT_THAT(Read("experiments/1/spark.log"), HasSubstr("1.master --> FINISHED"));
  const std::string shown = Out({"logs", "1"});
  for (const char* task : {"1.master", "1.worker.1", "1.ps.1"}) EXPECT_GT(LinesOf(shown, task).size(), 1) << task;
  EXPECT_THAT(shown, HasSubstr("Saving checkpoints for 6"));
}

}  // namespace
}  // namespace muster::spark_training_test
