// Sessions that train a table of rows beside a dense variable: what their algorithms push, and that a ps that lost its
// memory continues from the last checkpoint, table included.
#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "muster/algo/algorithms/asynchronous.h"
#include "muster/algo/algorithms/bounded_staleness.h"
#include "muster/algo/algorithms/synchronous.h"
#include "muster/base/status_macros.h"
#include "muster/store/client/row_client.h"
#include "muster/store/model/row_initializer.h"
#include "muster/store/testing/simulated_store.h"
#include "muster/train/session/session.h"

namespace muster::session_tables_test {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kRows = 50;
constexpr int64_t kWidth = 4;
const RuleSpec kSgd = {.kind = RuleKind::kSgd, .learning_rate = 1};

// Every minibatch looks up the same rows; the gradient of each of their elements is -1, and so is that of `b`.
class TableSource final : public GradientSource {
 public:
  const std::vector<VariableSpec>& variables() const override { return variables_; }
  MutableByteSpan value(size_t i) override { return i == 0 ? AsMutableBytes(b_.data(), b_.size()) : MutableByteSpan(); }
  absl::StatusOr<double> ComputeGradients() override {
    RETURN_IF_ERROR(look_up_(1, {.indices = rows, .values = AsMutableBytes(looked_up.data(), looked_up.size())}));
    return 1;
  }
  ByteSpan gradient(size_t i) override { return i == 0 ? AsBytes(ones_.data(), 2) : ByteSpan(); }
  void LookUpThrough(LookUp look_up) override { look_up_ = std::move(look_up); }
  std::span<const TableGradient> row_gradients() override { return {&gradient_, 1}; }

  const std::vector<int64_t> rows = {0, 7, 8, kRows - 1};
  std::vector<float> looked_up = std::vector<float>(rows.size() * kWidth);

 private:
  const std::vector<VariableSpec> variables_ = {{.name = "b", .shape = {2}},
                                                {.name = "table",
                                                 .shape = {kRows, kWidth},
                                                 .kind = VariableKind::kRows,
                                                 .table = {.initial = RowInitializer::Uniform(-1, 1, 7)}}};
  std::vector<float> b_ = std::vector<float>(2);
  const std::vector<float> ones_ = std::vector<float>(rows.size() * kWidth, -1);
  const TableGradient gradient_ = {1, {.indices = rows, .values = AsBytes(ones_.data(), ones_.size())}};
  LookUp look_up_;
};

enum class UpdateWay { kThroughThePs, kDirect, kBoundedStaleness };

class SessionTablesTest : public ::testing::TestWithParam<UpdateWay> {
 protected:
  SessionTablesTest() {
    PlacementResult placement = *PlaceVariables(source_.variables(), 2, Placement::kRoundRobin, {});
    if (GetParam() == UpdateWay::kBoundedStaleness)
      algorithm_ = std::make_unique<BoundedStalenessAlgorithm>(source_, std::move(placement), kSgd, 3);
    else
      algorithm_ = std::make_unique<AsynchronousAlgorithm>(source_, std::move(placement), kSgd);
  }
  SessionEnvironment Environment() {
    return {.client = client_.get(),
            .algorithm = algorithm_.get(),
            .loop = &store_.loop,
            .files = &store_.files,
            .clock = &store_.clock,
            .is_chief = true,
            .target = "muster://here:1"};
  }
  // Expects the table's initial values plus `updates` updates.
  void ExpectUpdates(int64_t updates) {
    std::vector<float> expected(kRows * kWidth), values(kRows * kWidth);
    InitializeRows(source_.variables()[1], {}, 0, AsMutableBytes(expected.data(), expected.size()));
    for (const int64_t row : source_.rows)
      for (int64_t i = 0; i < updates * kWidth; ++i) expected[row * kWidth + i % kWidth] += 1;
    std::vector<int64_t> all(kRows);
    for (int64_t row = 0; row < kRows; ++row) all[row] = row;
    RowClient rows(*client_);
    ASSERT_EQ(rows.Gather("table", {.indices = all, .values = AsMutableBytes(values.data(), values.size())}),
              absl::OkStatus());
    EXPECT_EQ(values, expected);
  }

  SimulatedStore store_{2, {"chief:0"}, {}, nullptr, /*direct=*/GetParam() == UpdateWay::kDirect};
  TableSource source_;
  std::unique_ptr<Algorithm> algorithm_;
  std::unique_ptr<StoreClient> client_ = store_.Client("chief:0", {.apply = ApplyChoice::kAuto});
};

TEST_P(SessionTablesTest, AnEmptyPsGoesOnFromTheLastCheckpointTableIncluded) {
  Session session(Environment(), {.checkpoint_dir = "model", .save_checkpoint_steps = 2}, {});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  for (int step = 0; step < 5; ++step) ASSERT_EQ(session.Run(), absl::OkStatus());  // saves at 0, 2 and 4
  ExpectUpdates(5);
  for (const int ps : {1, 0}) {
    store_.LosePs(ps);
    store_.StartPs(ps);
    ASSERT_EQ(session.Run(), absl::OkStatus());
    EXPECT_EQ(session.global_step(), 5);
    ExpectUpdates(5);
  }
  const std::vector<float> before = source_.looked_up;
  ASSERT_EQ(session.Run(), absl::OkStatus());
  for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(source_.looked_up[i], before[i] + 1) << "of the newest rows";
}

INSTANTIATE_TEST_SUITE_P(Ways, SessionTablesTest,
                         ::testing::Values(UpdateWay::kThroughThePs, UpdateWay::kDirect, UpdateWay::kBoundedStaleness));

TEST(SessionTables, ASynchronousGateIsRefused) {
  SimulatedStore store(1, {"chief:0"});
  TableSource source;
  SynchronousAlgorithm algorithm(source, *PlaceVariables(source.variables(), 1, Placement::kRoundRobin, {}), kSgd, {});
  const auto client = store.Client("chief:0");
  Session session({.client = client.get(),
                   .algorithm = &algorithm,
                   .loop = &store.loop,
                   .files = &store.files,
                   .clock = &store.clock,
                   .is_chief = true,
                   .target = "muster://here:1"},
                  {}, {});
  const absl::Status refused = session.Start();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("'table' is a table of rows, which a synchronous gate can't"));
}

}  // namespace
}  // namespace muster::session_tables_test
