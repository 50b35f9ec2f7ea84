// A model that computes on a copy of its values (on a GPU) is shown them whenever a session has changed them, before
// anybody may look: its user sees the same as without the copy.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "muster/train/testing/training_process.h"

namespace muster::session_values_test {
namespace {

using Values = std::vector<std::vector<float>>;

Values ValuesOf(QuadraticSource& source) { return {source.values(0), source.values(1)}; }

// Records what the model shows when hooks are called.
class Looker final : public SessionHook {
 public:
  explicit Looker(QuadraticSource& source) : source_(source) {}
  absl::Status AfterCreateSession(const SessionContext&) override { return Check(created); }
  absl::Status AfterRun(RunContext&, const RunValues&) override { return Check(ran); }
  absl::Status End(const SessionContext&) override { return Check(ended); }

  int created = 0;
  int ran = 0;
  int ended = 0;

 private:
  absl::Status Check(int& count) {
    EXPECT_EQ(source_.shown, ValuesOf(source_));
    ++count;
    return absl::OkStatus();
  }

  QuadraticSource& source_;
};

class SessionValuesTest : public ::testing::TestWithParam<UpdateWay> {
 protected:
  SimulatedStore store_{2, {"chief:0", "worker:0"}, {.lease = absl::Hours(100)}, nullptr, GetParam().direct()};
  TrainingProcess chief_{store_, "chief:0", {.way = GetParam()}};
  TrainingProcess worker_{store_, "worker:0", {.way = GetParam()}};
};

TEST_P(SessionValuesTest, AreShownWhenItIsCreatedAfterEachRunAndAtTheEnd) {
  chief_.source.values(0) = {5, 6, 7};
  auto looks = std::make_shared<Looker>(chief_.source);
  Session chief = chief_.MakeSession({}, {looks});
  ASSERT_EQ(chief.Start(), absl::OkStatus());
  auto worker_looks = std::make_shared<Looker>(worker_.source);
  Session worker = worker_.MakeSession({}, {worker_looks});
  ASSERT_EQ(worker.Start(), absl::OkStatus());
  EXPECT_EQ(worker_.source.shown[0], (std::vector<float>{5, 6, 7}));

  ASSERT_EQ(chief.Run(), absl::OkStatus());
  ASSERT_EQ(worker.Run(), absl::OkStatus());
  EXPECT_EQ(looks->ran + worker_looks->ran, 2);
  ASSERT_EQ(worker.Close(), absl::OkStatus());
  ASSERT_EQ(chief.Close(), absl::OkStatus());
  EXPECT_EQ(chief_.source.shown, ValuesOf(chief_.source));
  EXPECT_NE(chief_.source.shown[0], (std::vector<float>{5, 6, 7}));
  EXPECT_EQ(looks->created + worker_looks->created, 2);
  EXPECT_EQ(looks->ended + worker_looks->ended, 2);
}

TEST_P(SessionValuesTest, AreShownWhenACheckpointIsLoaded) {
  Session chief = chief_.MakeSession({.checkpoint_dir = "model", .save_checkpoint_steps = 1});
  ASSERT_EQ(chief.Start(), absl::OkStatus());
  ASSERT_EQ(chief.Run(), absl::OkStatus());
  const std::string path = chief.last_checkpoint();
  for (int i = 0; i < 3; ++i) ASSERT_EQ(chief.Run(), absl::OkStatus());
  const Values trained = ValuesOf(chief_.source);
  ASSERT_EQ(chief.Restore(path), absl::OkStatus());
  EXPECT_EQ(chief_.source.shown, ValuesOf(chief_.source));
  EXPECT_NE(chief_.source.shown, trained);
  ASSERT_EQ(chief.Close(), absl::OkStatus());
}

INSTANTIATE_TEST_SUITE_P(Ways, SessionValuesTest, ::testing::ValuesIn(kSimulatedWays), NameOfWay);

}  // namespace
}  // namespace muster::session_values_test
