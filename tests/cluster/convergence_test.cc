// Every algorithm of `muster algorithms` learns the digits with four workers in a fixed schedule: it must reach the
// accuracy of convergence_settings.h within its step budget, along the curve recorded in
// tests/data/convergence/NAME.csv. A curve is the loss of the global values on all training rows, every 20 minibatches
// of each worker.
//
// After a change that should move curves, or with a new algorithm, record them again and look at the difference:
//   MUSTER_WRITE_CURVES=1 build/release/bin/cluster_convergence_test
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "muster/algo/choice/algorithm_table.h"
#include "muster/base/files/file_system.h"
#include "muster/base/log.h"
#include "muster/base/testing/built_at.h"
#include "muster/data/csv.h"
#include "muster/data/images.h"
#include "tests/cluster/convergence_run.h"

namespace muster::convergence_test {
namespace {

// As a share of the loss at the start of a curve: 0.05 of about 2.4. Schedule and minibatches are always the same, so
// only the last bits of sums and of exp differ between machines and compilers. Training enlarges such differences, but
// the loss of all rows is smooth and changes by about the tolerance from point to point only where it is steep. The
// mistakes to be noticed there, a wrong rate, window or scale, move it by more: AnotherRateMissesTheCurve.
constexpr double kTolerance = 0.02;

bool WritesCurves() { return std::getenv("MUSTER_WRITE_CURVES") != nullptr; }

std::string CurveFile(const std::string& name) {
  return absl::StrCat(SourceFolder(), "/tests/data/convergence/", name, ".csv");
}

absl::Status WriteCurve(const std::string& name, const std::vector<ConvergencePoint>& curve) {
  std::string text = "minibatches,loss\n";
  for (const ConvergencePoint& point : curve) absl::StrAppendFormat(&text, "%d,%.4f\n", point.minibatches, point.loss);
  return WriteFileAtomically(PosixFileSystem(), CurveFile(name), AsBytes(text.data(), text.size()));
}

absl::StatusOr<std::vector<ConvergencePoint>> ReadCurve(const std::string& name) {
  const absl::StatusOr<CsvTable> table =
      ReadCsv(PosixFileSystem(), CurveFile(name), {.header = CsvOptions::Header::kPresent});
  if (!table.ok()) return table.status();
  std::vector<ConvergencePoint> curve;
  for (size_t row = 0; row < table->rows(); ++row)
    curve.push_back({static_cast<int>(table->at(row, 0)), table->at(row, 1)});
  return curve;
}

// Returns the largest difference of two curves with the same points, as a share of the recorded one's first loss;
// infinite if they have other points or a loss isn't a number.
double Difference(const std::vector<ConvergencePoint>& curve, const std::vector<ConvergencePoint>& recorded) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (recorded.empty() || curve.size() != recorded.size()) return kInfinite;
  double largest = 0;
  for (size_t i = 0; i < curve.size(); ++i) {
    const double difference = std::abs(curve[i].loss - recorded[i].loss);
    if (curve[i].minibatches != recorded[i].minibatches || !std::isfinite(difference)) return kInfinite;
    largest = std::max(largest, difference);
  }
  return largest / recorded[0].loss;
}

std::string Text(const std::vector<ConvergencePoint>& curve, const std::vector<ConvergencePoint>& recorded) {
  std::string text = "minibatches: loss, recorded\n";
  for (size_t i = 0; i < std::max(curve.size(), recorded.size()); ++i) {
    absl::StrAppendFormat(&text, "%5d: ", i < curve.size() ? curve[i].minibatches : recorded[i].minibatches);
    text += i < curve.size() ? absl::StrFormat("%.4f", curve[i].loss) : "-";
    text += i < recorded.size() ? absl::StrFormat(", %.4f\n", recorded[i].loss) : ", -\n";
  }
  return text;
}

class ConvergenceTest : public ::testing::TestWithParam<ConvergenceSetting> {
 protected:
  // Makes the log exist before the threads of all-reduce.
  static void SetUpTestSuite() { SetUpLog("tasks"); }

  void SetUp() override { digits_ = LoadDigits(SourceFolder() + "/examples/data/digits.csv").value(); }

  ImageData digits_;
};

TEST_P(ConvergenceTest, ReachesItsAccuracyAlongTheRecordedCurve) {
  const ConvergenceSetting& setting = GetParam();
  ASSERT_EQ(setting.minibatches % kConvergencePoint, 0);
  const ConvergenceRun run = TrainDigits(setting, digits_);
  ASSERT_FALSE(HasFailure());
  EXPECT_GE(run.accuracy, kConvergenceAccuracy) << "after " << setting.minibatches << " minibatches of each worker";
  if (WritesCurves()) {
    ASSERT_EQ(WriteCurve(setting.name, run.curve), absl::OkStatus());
    return;
  }
  const auto recorded = ReadCurve(setting.name);
  ASSERT_TRUE(recorded.ok()) << recorded.status() << "; to record it: MUSTER_WRITE_CURVES=1";
  EXPECT_LE(Difference(run.curve, *recorded), kTolerance) << Text(run.curve, *recorded);
}

INSTANTIATE_TEST_SUITE_P(Algorithms, ConvergenceTest, ::testing::ValuesIn(ConvergenceSettings()),
                         [](const auto& info) { return info.param.name; });

class RecordedCurveTest : public ConvergenceTest {};

// The tolerance is small enough to notice a rate that is a fifth smaller.
TEST_P(RecordedCurveTest, AnotherRateMissesTheCurve) {
  ConvergenceSetting slower = GetParam();
  slower.parameters["server_rule"] = "sgd:learning_rate=0.08";
  slower.minibatches = 200;
  const ConvergenceRun run = TrainDigits(slower, digits_);
  auto recorded = ReadCurve(slower.name).value();
  ASSERT_GE(recorded.size(), run.curve.size());
  recorded.resize(run.curve.size());
  EXPECT_GT(Difference(run.curve, recorded), kTolerance) << Text(run.curve, recorded);
}

INSTANTIATE_TEST_SUITE_P(Hogwild, RecordedCurveTest, ::testing::Values(ConvergenceSettings()[0]),
                         [](const auto& info) { return info.param.name; });

TEST(ConvergenceSettingsTest, EveryAlgorithmHasALine) {
  std::vector<std::string> there, tested;
  for (const AlgorithmInfo& algorithm : AlgorithmTable()) there.emplace_back(algorithm.name);
  for (const ConvergenceSetting& setting : ConvergenceSettings()) tested.push_back(setting.name);
  EXPECT_EQ(tested, there);
}

}  // namespace
}  // namespace muster::convergence_test
