#include "muster/estimator/distributed/early_stopping_by_evaluation.h"

#include <gmock/gmock.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "muster/base/files/memory_file_system.h"
#include "muster/estimator/testing/straight_line.h"
#include "muster/train/testing/hook_driver.h"
#include "muster/train/threads/error.h"

namespace muster::early_stopping_by_evaluation_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::Pair, ::testing::UnorderedElementsAre;

const StopCheck kEachStep = {.run_every_steps = 1};

void Write(FileSystem& files, const std::string& directory, const std::string& text) {
  ASSERT_TRUE(files.CreateDirectory(directory).ok());
  ASSERT_TRUE(WriteFileAtomically(files, directory + "/metrics.jsonl", AsBytes(text.data(), text.size())).ok());
}

TEST(ReadEvalMetricsTest, IsTheLaterOfEachStepAndPassesOverAnUnfinishedLine) {
  MemoryFileSystem files;
  EXPECT_TRUE(ReadEvalMetrics(files, "eval")->empty());
  Write(files, "eval",
        "{\"global_step\": 10, \"loss\": 0.5, \"wall_time\": 1.5}\n"
        "{\"global_step\": 20, \"loss\": null}\n"
        "{\"global_step\": 10, \"loss\": 0.25}\n"
        "{\"global_step\": 30, \"lo");
  const auto read = ReadEvalMetrics(files, "eval").value();
  ASSERT_EQ(read.size(), 2);
  EXPECT_THAT(read.at(10), UnorderedElementsAre(Pair("global_step", 10), Pair("loss", 0.25)));
  EXPECT_TRUE(std::isnan(read.at(20).at("loss")));
}

TEST(ReadEvalMetricsTest, ADamagedLineIsNamed) {
  for (const char* line : {"loss 3", "[1]", "{\"loss\": 3}", "{\"global_step\": 1, \"loss\": \"low\"}",
                           "{\"global_step\": -1}", "{\"global_step\": null}"}) {
    MemoryFileSystem files;
    Write(files, "eval", absl::StrCat("{\"global_step\": 1}\n", line, "\n"));
    const auto read = ReadEvalMetrics(files, "eval");
    EXPECT_TRUE(absl::IsDataLoss(read.status())) << line;
    EXPECT_THAT(std::string(read.status().message()), HasSubstr("eval/metrics.jsonl, line 2: ")) << line;
  }
}

class EvalStopTest : public ::testing::Test {
 protected:
  // Writes evaluations at steps 10, 20, …
  void Evaluated(const std::vector<double>& losses) {
    std::string text;
    for (size_t i = 0; i < losses.size(); ++i)
      absl::StrAppend(&text, "{\"global_step\":", 10 * (i + 1),
                      ",\"loss\":", std::isnan(losses[i]) ? "null" : absl::StrCat(losses[i]), "}\n");
    Write(PosixFileSystem(), estimator_.EvalDir(), text);
  }
  // Whether the hook stops training when it is asked once.
  static bool Stops(std::shared_ptr<SessionHook> hook, bool is_chief = true) {
    Driver driver(std::move(hook));
    driver.is_chief = is_chief;
    EXPECT_EQ(driver.Begin(), absl::OkStatus());
    const bool stops = driver.Run(100);
    EXPECT_EQ(driver.status, absl::OkStatus());
    return stops;
  }
  bool NoDecrease(int64_t max_steps, int64_t min_steps = 0) {
    return Stops(StopIfEvalHasNoDecrease(estimator_, max_steps, {.min_steps = min_steps, .check = kEachStep}));
  }
  bool NoIncrease(int64_t max_steps) {
    return Stops(StopIfEvalHasNoIncrease(estimator_, max_steps, {.check = kEachStep}));
  }

  const ModelDirectory model_;
  Estimator estimator_{LineModel, model_.Config()};
};

TEST_F(EvalStopTest, NoDecreaseForSoManySteps) {
  EXPECT_FALSE(NoDecrease(1)) << "nothing is evaluated yet";
  Evaluated({5});
  EXPECT_FALSE(NoDecrease(1));
  Evaluated({5, 4, 4, 4});
  EXPECT_TRUE(NoDecrease(20)) << "equal is no decrease";
  EXPECT_FALSE(NoDecrease(21));
  Evaluated({5, 6, 7, 1});
  EXPECT_TRUE(NoDecrease(20)) << "what came later makes no difference";
  EXPECT_FALSE(NoDecrease(20, 20)) << "its first value is 6";
  Evaluated({std::nan(""), 5, 4, 3});
  EXPECT_FALSE(NoDecrease(20)) << "NaN is never the best";
}

TEST_F(EvalStopTest, NoIncreaseForSoManySteps) {
  Evaluated({1, 2, 2, 2});
  EXPECT_TRUE(NoIncrease(20));
  Evaluated({1, 2, 3, 4});
  EXPECT_FALSE(NoIncrease(20));
}

TEST_F(EvalStopTest, AThreshold) {
  Evaluated({5, 4, 3});
  const auto higher = [&](double threshold, int64_t min_steps) {
    return Stops(StopIfEvalIsHigher(estimator_, threshold, {.min_steps = min_steps, .check = kEachStep}));
  };
  const auto lower = [&](double threshold) {
    return Stops(StopIfEvalIsLower(estimator_, threshold, {.check = kEachStep}));
  };
  EXPECT_TRUE(higher(4.5, 10));
  EXPECT_FALSE(higher(5, 10));
  EXPECT_FALSE(higher(4.5, 20));
  EXPECT_TRUE(lower(3.5));
  EXPECT_FALSE(lower(3));
}

TEST_F(EvalStopTest, SaysWhy) {
  Evaluated({5, 6, 7});
  EXPECT_THAT(Logged([&] { NoDecrease(20); }),
              ElementsAre("No decrease in metric \"loss\" for 20 steps, which is greater than or equal to max steps "
                          "(20) configured for early stopping.",
                          HasSubstr("Requesting early stopping at global step 100")));
}

TEST_F(EvalStopTest, AnotherFolderAndAMetricThatIsntThere) {
  const std::string other = model_.path() + "/other";
  Write(PosixFileSystem(), other, "{\"global_step\":1,\"accuracy\":0.9}\n");
  const auto stop_at = [&](const std::string& metric) {
    return Stops(StopIfEvalIsHigher(estimator_, 0.5, {.metric = metric, .eval_dir = other, .check = kEachStep}));
  };
  EXPECT_TRUE(stop_at("accuracy"));
  EXPECT_THAT(Logged([&] { EXPECT_FALSE(stop_at("acuracy")); }),
              ElementsAre(AllOf(HasSubstr("has \"acuracy\"; there are: accuracy, global_step"), HasSubstr(other))));
}

TEST_F(EvalStopTest, OnlyTheChiefLooks) {
  Write(PosixFileSystem(), estimator_.EvalDir(), "damaged\n");
  EXPECT_FALSE(Stops(StopIfEvalIsHigher(estimator_, 0, {.check = kEachStep}), /*is_chief=*/false));
  Driver chief(StopIfEvalIsHigher(estimator_, 0, {.check = kEachStep}));
  EXPECT_THROW(chief.Run(1), Error) << "which a session catches";
}

TEST_F(EvalStopTest, BadOptionsAreNamed) {
  const auto error_of = [](const auto& make) {
    try {
      make();
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), ExitCode::kUsage);
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(error_of([&] { StopIfEvalHasNoDecrease(estimator_, 0); }),
              HasSubstr("max_steps_without_decrease is 0; accepted: 1 or more"));
  EXPECT_THAT(error_of([&] { StopIfEvalHasNoIncrease(estimator_, -1); }), HasSubstr("max_steps_without_increase"));
  EXPECT_THAT(error_of([&] { StopIfEvalIsLower(estimator_, std::nan("")); }), HasSubstr("threshold"));
}

}  // namespace
}  // namespace muster::early_stopping_by_evaluation_test
