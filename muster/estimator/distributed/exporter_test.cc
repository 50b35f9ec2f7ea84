#include "muster/estimator/distributed/exporter.h"

#include <gmock/gmock.h>

#include <vector>

#include "absl/strings/numbers.h"
#include "muster/estimator/testing/straight_line.h"
#include "muster/train/threads/error.h"

namespace muster::exporter_test {
namespace {

using ::testing::HasSubstr, ::testing::IsEmpty, ::testing::SizeIs, ::testing::StartsWith;

class ExporterTest : public ::testing::Test {
 protected:
  // Exports after an evaluation of the checkpoint of `step`. Returns the path of the export, or empty.
  std::string Export(Exporter& exporter, int64_t step, double loss, bool is_final = false) {
    while (trained_ < step) estimator_.Train(LineForEver, {.max_steps = ++trained_});
    return exporter.Export(estimator_, exports_, model_.path() + "/model.ckpt-" + std::to_string(step),
                           {{"loss", loss}, {"accuracy", 1 - loss}}, is_final);
  }
  // Returns the paths of the existing exports, oldest first.
  std::vector<std::string> Exports() const {
    std::vector<std::string> paths;
    if (!PosixFileSystem().Exists(exports_)) return paths;
    const auto names = PosixFileSystem().ListDirectory(exports_);
    int64_t number = 0;
    for (const std::string& name : *names)
      if (absl::SimpleAtoi(name, &number)) paths.push_back(exports_ + "/" + name);
    return paths;
  }

  const ModelDirectory model_;
  const std::string exports_ = model_.path() + "/export/some";
  Estimator estimator_{LineModel, model_.Config()};
  int64_t trained_ = 0;
};

TEST_F(ExporterTest, LatestExportsEachCheckpointOnceAndKeepsTheNewest) {
  const auto latest = LatestExporter({.inputs = LineInputs(), .exports_to_keep = 2});
  EXPECT_EQ(latest->name(), "latest");
  std::vector<std::string> exported;
  for (int64_t step = 1; step <= 3; ++step) exported.push_back(Export(*latest, step, 1));
  EXPECT_THAT(exported[0], StartsWith(exports_ + "/"));
  EXPECT_EQ(Exports(), (std::vector<std::string>{exported[1], exported[2]}));
  EXPECT_EQ(Export(*latest, 3, 1, /*is_final=*/true), "") << "it is there";
  EXPECT_THAT(Exports(), SizeIs(2));
}

TEST_F(ExporterTest, LatestKeepsAllAndOtherFiles) {
  const auto latest = LatestExporter({.inputs = LineInputs(), .exports_to_keep = 0});
  for (int64_t step = 1; step <= 3; ++step) Export(*latest, step, 1);
  EXPECT_THAT(Exports(), SizeIs(3));
  ASSERT_TRUE(PosixFileSystem().CreateDirectory(exports_ + "/01").ok());
  ASSERT_TRUE(PosixFileSystem().CreateDirectory(exports_ + "/mine").ok());
  Export(*LatestExporter({.inputs = LineInputs(), .exports_to_keep = 1}), 4, 1);
  EXPECT_TRUE(PosixFileSystem().Exists(exports_ + "/01"));
  EXPECT_TRUE(PosixFileSystem().Exists(exports_ + "/mine"));
  EXPECT_THAT(Exports(), SizeIs(2)) << "the exporter never makes an export called 01";
}

TEST_F(ExporterTest, BestExportsWhatIsBetterThanAllBeforeAlsoAfterARestart) {
  {
    const auto best = BestExporter({.inputs = LineInputs()});
    EXPECT_EQ(best->name(), "best_exporter");
    EXPECT_NE(Export(*best, 1, 0.5), "") << "the first is the best so far";
    EXPECT_EQ(Export(*best, 2, 0.6), "");
    EXPECT_NE(Export(*best, 3, 0.4), "");
    EXPECT_EQ(Export(*best, 3, 0.4, /*is_final=*/true), "");
  }
  const auto restarted = BestExporter({.inputs = LineInputs()});
  EXPECT_EQ(Export(*restarted, 4, 0.45), "");
  EXPECT_EQ(Export(*restarted, 5, 0.4), "") << "equal is no better";
  EXPECT_NE(Export(*restarted, 6, 0.3), "");
  EXPECT_THAT(Exports(), SizeIs(3));
}

TEST_F(ExporterTest, BestAsksTheProgram) {
  const auto best =
      BestExporter({.inputs = LineInputs(),
                    .compare = [](const EvalResults& best,
                                  const EvalResults& now) { return now.at("accuracy") < best.at("accuracy"); },
                    .exports_to_keep = 1});
  EXPECT_NE(Export(*best, 1, 0.5), "");
  EXPECT_EQ(Export(*best, 2, 0.4), "");
  EXPECT_NE(Export(*best, 3, 0.6), "");
  EXPECT_THAT(Exports(), SizeIs(1));
}

TEST_F(ExporterTest, BestNamesAStateThatItCannotRead) {
  ASSERT_TRUE(PosixFileSystem().CreateDirectory(exports_).ok());
  for (const std::string text : {"nothing", "{}", "{\"results\": {\"loss\": \"low\"}}"}) {
    ASSERT_TRUE(
        WriteFileAtomically(PosixFileSystem(), exports_ + "/best.json", AsBytes(text.data(), text.size())).ok());
    try {
      Export(*BestExporter({.inputs = LineInputs()}), 1, 0.5);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_TRUE(absl::IsDataLoss(error.status()));
      EXPECT_THAT(error.what(), HasSubstr(exports_ + "/best.json: "));
    }
  }
  EXPECT_THAT(Exports(), IsEmpty());
}

TEST_F(ExporterTest, FinalExportsTheLast) {
  const auto final_one = FinalExporter({.inputs = LineInputs()});
  EXPECT_EQ(final_one->name(), "final");
  EXPECT_EQ(Export(*final_one, 1, 0.5), "");
  const std::string exported = Export(*final_one, 1, 0.5, /*is_final=*/true);
  EXPECT_EQ(Exports(), (std::vector<std::string>{exported}));
}

TEST(ExporterOptionsTest, MistakesAreNamed) {
  const auto expect_refused = [](const auto& make, const std::string& text) {
    try {
      make();
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), ExitCode::kUsage);
      EXPECT_THAT(error.what(), HasSubstr(text));
    }
  };
  expect_refused([] { LatestExporter({}); }, "LatestExporter \"latest\": inputs");
  expect_refused([] { BestExporter({.name = "a/b", .inputs = LineInputs()}); }, "BestExporter \"a/b\": name");
  expect_refused([] { FinalExporter({.name = "", .inputs = LineInputs()}); }, "name");
  expect_refused([] { LatestExporter({.inputs = LineInputs(), .exports_to_keep = -1}); }, "exports_to_keep: -1");
}

}  // namespace
}  // namespace muster::exporter_test
