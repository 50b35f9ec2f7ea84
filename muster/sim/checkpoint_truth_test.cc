// What the parts of a checkpoint must hold: all minibatches of a window or none, depending on whether its push was
// counted. With a synchronous gate, the rounds before the step of each ps; once training has ended no ps waits for
// another one's.
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
    truth_.Begin({});
  }
  // Makes ps 0 and ps 1 mark in those rounds.
  void Mark(uint64_t first, uint64_t second, bool ended) {
    truth_.Mark({1, 1}, 0, {.global_step = static_cast<int64_t>(first), .round = first});
    truth_.Mark({1, 1}, 1, {.round = second, .ended = ended});
  }
  // Checks one row of each ps, with the means of that many rounds.
  std::optional<std::string> Check(int64_t step, uint64_t first, uint64_t second) {
    std::vector<PushLedger::Digits> digits(2, PushLedger::Digits{});
    digits[0][0] = first * ledger_.unit();
    digits[1][0] = second * ledger_.unit();
    return truth_.Check(step, 0, digits, std::vector<PushLedger::Row>(2), {0, 1});
  }

  PushLedger ledger_{2, LedgerForm::kAveraged};
  CheckpointTruth truth_{ledger_};
};

TEST_F(CheckpointTruthTest, EveryPsHasTheRoundsBeforeTheStep) {
  Mark(1, 1, false);
  EXPECT_EQ(Check(1, 1, 1), std::nullopt);
  EXPECT_NE(Check(1, 1, 2), std::nullopt);
  EXPECT_NE(Check(1, 1, 0), std::nullopt);
  EXPECT_NE(Check(2, 2, 2), std::nullopt) << "no cut was made there";
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

TEST(CheckpointTruthOfWindowsTest, AWindowIsInsideWholeOrNotAtAll) {
  PushLedger ledger(1);
  CheckpointTruth truth(ledger);
  ledger.BeginGeneration(0, 1, 0, {});
  truth.SetBegun(0, {});
  truth.Begin({.numbers = {0}});
  std::vector<PushLedger::Row> rows(1, PushLedger::Row{});
  const auto compute = [&](PushLedger::Push& push) { push.push_back(*ledger.Begin(0)); };
  const auto apply = [&](const PushLedger::Minibatch& minibatch) {
    rows[0][ledger.Element(minibatch)] |= ledger.Digit(minibatch);
  };
  const auto check = [&](int64_t step) { return truth.Check(step, 0, std::vector<PushLedger::Digits>(1), rows, {0}); };
  PushLedger::Push first;
  compute(first);
  compute(first);
  PushLedger::Push second;
  compute(second);
  ledger.Send(7, first);
  ledger.Number(7, 1);
  truth.Count({1}, {7});
  EXPECT_EQ(truth.minibatches(), 2);
  truth.Mark({1, 1}, 0, {});
  ledger.Send(7, second);
  ledger.Number(7, 2);
  truth.Count({2}, {7});
  EXPECT_EQ(truth.minibatches(), 3);

  apply(first[0]);
  EXPECT_EQ(check(1), "misses minibatch 1 of worker 0, which its step counts");
  apply(first[1]);
  EXPECT_EQ(check(1), std::nullopt);
  EXPECT_NE(check(2), std::nullopt) << "a step is a push, not a minibatch";
  apply(second[0]);
  EXPECT_EQ(check(1), "has minibatch 2 of worker 0, which its step doesn't count");
}

// A ps that had held a push back has applied, counted and answered it before the next message arrives: by then its
// sender is at the next push.
TEST(CheckpointTruthOfNumbersTest, ACountIsOfThePushOfItsNumber) {
  PushLedger ledger(1);
  CheckpointTruth truth(ledger);
  ledger.BeginGeneration(0, 1, 0, {});
  truth.SetBegun(0, {});
  truth.Begin({.numbers = {0}});
  const PushLedger::Push first = {*ledger.Begin(0)};
  const PushLedger::Push second = {*ledger.Begin(0)};
  ledger.Send(7, first);
  ledger.Number(7, 3);
  ledger.Send(7, second);
  ledger.Number(7, 3);  // again
  truth.Count({3}, {7});
  truth.Mark({1, 1}, 0, {});
  ledger.Number(7, 4);
  truth.Mark({1, 2}, 0, {.uncounted = {{7, 4}}});
  std::vector<PushLedger::Row> rows(1, PushLedger::Row{});
  const auto check = [&](int64_t step) { return truth.Check(step, 0, std::vector<PushLedger::Digits>(1), rows, {0}); };
  rows[0][ledger.Element(first[0])] |= ledger.Digit(first[0]);
  EXPECT_EQ(check(1), std::nullopt);
  EXPECT_EQ(check(2), "misses minibatch 1 of worker 0, which its step counts");
  rows[0][ledger.Element(second[0])] |= ledger.Digit(second[0]);
  EXPECT_EQ(check(2), std::nullopt);
}

// The sender died when one of two ps had the push. The checkpoint that both begin with again is the same.
TEST(CheckpointTruthOfTwoPsTest, EachPsHasWhatItBeganWith) {
  PushLedger ledger(2);
  CheckpointTruth truth(ledger);
  const PushLedger::Minibatch half = *ledger.Begin(0);
  std::vector<PushLedger::Row> rows(2, PushLedger::Row{});
  rows[0][ledger.Element(half)] |= ledger.Digit(half);
  for (int ps = 0; ps < 2; ++ps) {
    ledger.BeginGeneration(ps, 2, 5, {rows[ps], {}});
    truth.SetBegun(ps, {rows[ps], {}});
  }
  truth.Begin({.global_step = 5, .numbers = {0}});
  for (int ps = 0; ps < 2; ++ps) truth.Mark({1, 1}, ps, {});
  const auto check = [&] { return truth.Check(5, 0, std::vector<PushLedger::Digits>(2), rows, {0, 1}); };
  EXPECT_EQ(check(), std::nullopt);
  rows[0] = {};
  EXPECT_EQ(check(), "misses a push that its model began with");
}

}  // namespace
}  // namespace muster::checkpoint_truth_test
