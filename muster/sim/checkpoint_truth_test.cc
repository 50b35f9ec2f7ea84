// What the parts of a checkpoint must hold with a synchronous gate: of each ps the rounds before its step. Once
// training has ended no ps waits for another one's round.
#include "muster/sim/checkpoint_truth.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace muster::checkpoint_truth_test {
namespace {

class CheckpointTruthTest : public ::testing::Test {
 protected:
  CheckpointTruthTest() {
    for (int ps = 0; ps < 2; ++ps) {
      ledger_.BeginGeneration(ps, 1, 0, {});
      for (uint64_t round = 0; round < 3; ++round) truth_.SetTotal(ps, round, round * ledger_.unit());
    }
    truth_.Begin(0, {}, {});
  }
  // ps 0 and ps 1 have marked in those rounds.
  void Mark(uint64_t first, uint64_t second, bool ended) {
    truth_.Mark({1, 1}, 0, {.global_step = static_cast<int64_t>(first), .round = first});
    truth_.Mark({1, 1}, 1, {.round = second, .ended = ended});
  }
  // A row of each ps, with the means of so many rounds.
  std::optional<std::string> Check(int64_t step, uint64_t first, uint64_t second) {
    std::vector<PushLedger::Digits> digits(2, PushLedger::Digits{});
    digits[0][0] = first * ledger_.unit();
    digits[1][0] = second * ledger_.unit();
    return truth_.Check(step, 0, digits, std::vector<PushLedger::Row>(2), {0, 1});
  }

  PushLedger ledger_{2, /*averaged=*/true};
  CheckpointTruth truth_{ledger_};
};

TEST_F(CheckpointTruthTest, EveryPsHasTheRoundsBeforeTheStep) {
  Mark(1, 1, false);
  EXPECT_EQ(Check(1, 1, 1), std::nullopt);
  EXPECT_NE(Check(1, 1, 2), std::nullopt);
  EXPECT_NE(Check(1, 1, 0), std::nullopt);
  EXPECT_NE(Check(2, 2, 2), std::nullopt) << "nobody cut there";
}

TEST_F(CheckpointTruthTest, ARoundMoreIsWrongWhileTraining) {
  Mark(1, 2, false);
  EXPECT_NE(Check(1, 1, 2), std::nullopt);
}

TEST_F(CheckpointTruthTest, OnceTrainingHasEndedEveryPsHasTheRoundsThatItCameTo) {
  Mark(1, 2, true);
  EXPECT_EQ(Check(1, 1, 2), std::nullopt);
  EXPECT_NE(Check(1, 1, 1), std::nullopt);
  EXPECT_NE(Check(1, 2, 2), std::nullopt);
}

}  // namespace
}  // namespace muster::checkpoint_truth_test
