#include "muster/train/hooks/gradients.h"

#include <gmock/gmock.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/algo/algorithms/bounded_staleness.h"
#include "muster/algo/algorithms/synchronous.h"
#include "muster/summary/event_file_reader.h"
#include "muster/train/testing/hook_driver.h"
#include "muster/train/testing/training_process.h"

namespace muster::gradients_test {
namespace {

using ::testing::Contains, ::testing::ElementsAre, ::testing::HasSubstr;

// Returns lines "5: tag tag" for events with a gradient in them.
std::vector<std::string> Tags(const std::vector<SummaryEvent>& events) {
  std::vector<std::string> lines;
  for (const SummaryEvent& event : events) {
    std::string line;
    for (const auto& [tag, value] : event.scalars)
      if (absl::StrContains(tag, "gradient")) absl::StrAppend(&line, " ", tag);
    for (const auto& [tag, num] : event.histograms) absl::StrAppend(&line, " ", tag, "*", num);
    if (!line.empty()) lines.push_back(absl::StrCat(event.step, ":", line));
  }
  return lines;
}

const std::vector<VariableSpec> kVariables = {{.name = "w", .shape = {3}},
                                              {.name = "mean", .shape = {2}, .kind = VariableKind::kBuffer},
                                              {.name = "b", .shape = {2}}};
const SessionOptions kOptions = {.summary_dir = "logs", .save_summaries_steps = 0, .log_step_count_steps = 0};

enum class Kind { kAsynchronous, kInParts, kDirect, kPipelined, kSynchronous, kBounded };

class GradientsTest : public ::testing::TestWithParam<Kind> {
 protected:
  std::unique_ptr<Algorithm> Make(GradientSource& source) const {
    PlacementResult placement = *PlaceVariables(kVariables, 1, Placement::kRoundRobin, {});
    const RuleSpec rule = {.learning_rate = 0.1};
    switch (GetParam()) {
      case Kind::kPipelined:
        return std::make_unique<PipelinedAlgorithm>(source, placement, rule, PipelinedOptions{.thread = false});
      case Kind::kSynchronous:
        return std::make_unique<SynchronousAlgorithm>(source, placement, rule, SynchronousOptions());
      case Kind::kBounded:
        return std::make_unique<BoundedStalenessAlgorithm>(source, placement, rule, 0);
      default:
        return std::make_unique<AsynchronousAlgorithm>(source, placement, rule);
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Algorithms, GradientsTest,
                         ::testing::Values(Kind::kAsynchronous, Kind::kInParts, Kind::kDirect, Kind::kPipelined,
                                           Kind::kSynchronous, Kind::kBounded));

TEST_P(GradientsTest, EachAlgorithmShowsWhatTheMinibatchGave) {
  SimulatedStore store(1, {"chief:0"}, {}, nullptr, GetParam() == Kind::kDirect);
  QuadraticSource source(kVariables);
  const auto algorithm = Make(source);
  const auto client =
      store.Client("chief:0", {.apply = GetParam() == Kind::kDirect ? ApplyChoice::kDirect : ApplyChoice::kServer,
                               .part_bytes = GetParam() == Kind::kInParts ? 1u : 0u});
  // The expected gradients of each minibatch: the distances of the values from which it was computed.
  std::vector<std::vector<double>> expected;
  source.on_step = [&](double loss) {
    double w = 0, b = 0;
    for (const float gradient : {source.gradient_of(0, 0), source.gradient_of(0, 1), source.gradient_of(0, 2)})
      w += gradient * gradient;
    for (const float gradient : {source.gradient_of(2, 0), source.gradient_of(2, 1)}) b += gradient * gradient;
    expected.push_back({std::sqrt(w + b), std::sqrt(w), std::sqrt(b)});
    return loss;
  };
  Session session({.client = client.get(),
                   .algorithm = algorithm.get(),
                   .loop = &store.loop,
                   .files = &store.files,
                   .clock = &store.clock,
                   .is_chief = true},
                  kOptions, {GradientNorms({.save_steps = 2}), GradientHistograms({.save_steps = 3})});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  for (int i = 0; i < 6; ++i) ASSERT_EQ(session.Run(), absl::OkStatus());
  ASSERT_EQ(session.Close(), absl::OkStatus());
  const auto events = ReadEventFiles(store.files, "logs");
  const std::string norms = " global_norm/gradient_norm gradient_norm/w gradient_norm/b";
  EXPECT_THAT(Tags(events), ElementsAre("1:" + norms, "1: gradients/w*3", "1: gradients/b*2", "3:" + norms,
                                        "4: gradients/w*3", "4: gradients/b*2", "5:" + norms));
  for (const SummaryEvent& event : events)
    for (size_t i = 0; i < event.scalars.size(); ++i)
      EXPECT_NEAR(event.scalars[i].second, expected.at(event.step - 1)[i], 1e-5) << event.ToString();
}

TEST(GradientHooksTest, NobodyLooksBetweenTheSteps) {
  SimulatedStore store(1, {"chief:0", "worker:0"});
  TrainingProcess process(store, "chief:0", {.files = &store.files});
  std::vector<bool> looked;
  process.source.on_step = [&](double loss) {
    looked.push_back(process.algorithm->gradient_tap().observed());
    return loss;
  };
  Session session = process.MakeSession(kOptions, {GradientNorms({.save_steps = 3})});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  for (int i = 0; i < 5; ++i) ASSERT_EQ(session.Run(), absl::OkStatus());
  EXPECT_THAT(looked, ElementsAre(true, false, false, true, false));
  EXPECT_FALSE(process.algorithm->gradient_tap().observed());

  // A task without summaries doesn't look at gradients.
  TrainingProcess worker(store, "worker:0");
  Session other = worker.MakeSession({}, {GradientNorms({.save_steps = 1}), GradientHistograms({.save_steps = 1})});
  worker.source.on_step = [&](double loss) {
    EXPECT_FALSE(worker.algorithm->gradient_tap().observed());
    return loss;
  };
  ASSERT_EQ(other.Start(), absl::OkStatus());
  ASSERT_EQ(other.Run(), absl::OkStatus());
}

TEST(GradientHooksTest, AFailedStepLeavesNoObserverBehind) {
  SimulatedStore store(1, {"chief:0"});
  TrainingProcess process(store, "chief:0", {.files = &store.files});
  Session session = process.MakeSession(kOptions, {GradientNorms({.save_steps = 1})});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  process.source.on_step = [](double) { return absl::StatusOr<double>(absl::DataLossError("bad image")); };
  EXPECT_FALSE(session.Run().ok());
  EXPECT_FALSE(process.algorithm->gradient_tap().observed());
}

// Shows a hook given gradients, without an algorithm.
class ShownGradients : public ::testing::Test {
 protected:
  void Show(SessionHook& hook, const GradientView& view) {
    RunContext context(SessionContext{.summaries = writer_.get()});
    ASSERT_EQ(hook.BeforeRun(context), absl::OkStatus());
    for (const GradientObserver& observer : context.gradient_observers()) observer(view);
    ASSERT_EQ(hook.AfterRun(context, {.global_step = 1}), absl::OkStatus());
    ASSERT_EQ(writer_->Flush(), absl::OkStatus());
  }

  SimulatedClock clock_;
  MemoryFileSystem files_;
  std::unique_ptr<EventFileWriter> writer_ = *EventFileWriter::Open(files_, clock_, "logs", {});
};

TEST_F(ShownGradients, RowsOfATableThatWereLookedUpTwiceAreSummed) {
  const std::vector<VariableSpec> variables = {{.name = "table", .shape = {9, 2}, .kind = VariableKind::kRows}};
  const std::vector<int64_t> indices = {7, 2, 7};
  const std::vector<float> values = {1, 0, 0, 12, 2, 4};  // row 7: (3, 4), row 2: (0, 12)
  const TableGradient rows{0, {indices, DType::kFloat32, AsBytes(values.data(), values.size())}};
  const auto none = [](size_t) { return ByteSpan(); };
  const GradientView view{variables, none, {&rows, 1}};
  Show(*GradientNorms({.save_steps = 1}), view);
  Show(*GradientHistograms({.save_steps = 1}), view);
  const auto events = ReadEventFiles(files_, "logs");
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].ToString(), "1: global_norm/gradient_norm=13 gradient_norm/table=13");
  EXPECT_EQ(events[1].ToString(), "1: gradients/table of 4");
}

TEST_F(ShownGradients, OtherTypesAndMoreThanOnePieceAndWhatIsNoNumber) {
  const std::vector<VariableSpec> variables = {{.name = "d", .dtype = DType::kFloat64, .shape = {5000}},
                                               {.name = "h", .dtype = DType::kBFloat16, .shape = {2}}};
  std::vector<double> doubles(5000, 2.0);
  const std::vector<uint16_t> halves = {0x4040, 0x4080};  // 3, 4
  const auto gradient = [&](size_t i) {
    return i == 0 ? AsBytes(doubles.data(), doubles.size()) : AsBytes(halves.data(), halves.size());
  };
  const GradientView view{variables, gradient, {}};
  Show(*GradientNorms({.save_steps = 1}), view);
  const auto events = ReadEventFiles(files_, "logs");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_NEAR(events[0].scalars.at(1).second, std::sqrt(4.0 * 5000), 1e-3);
  EXPECT_NEAR(events[0].scalars.at(2).second, 5, 1e-6);
  doubles[4999] = std::nan("");
  EXPECT_THAT(Logged([&] { Show(*GradientHistograms({.save_steps = 1}), view); }),
              Contains(HasSubstr("the gradient of d has 1 values that are NaN or infinite")));
  EXPECT_EQ(ReadEventFiles(files_, "logs").at(1).ToString(), "1: gradients/d of 4999");
}

}  // namespace
}  // namespace muster::gradients_test
