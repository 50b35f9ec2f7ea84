// What a ps logs about workers that are lost, and about those that are back.
#include "muster/store/gates/presence.h"

#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <string>

#include "muster/base/log.h"
#include "muster/store/testing/scripted_worker.h"

namespace muster::presence_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr, ::testing::Not;

std::string LogOf(const std::function<void()>& act) {
  ::testing::internal::CaptureStderr();
  SetUpLog("");
  act();
  return ::testing::internal::GetCapturedStderr();
}

class TableOfTwo : public ::testing::Test {
 protected:
  void Join(const std::string& task, uint64_t connection, absl::Time now) {
    ASSERT_TRUE(
        clients_.Join({task, /*incarnation=*/++incarnation_, /*chief=*/false, "here"}, ConnectionId{connection}, now)
            .ok());
  }
  std::string Recheck(absl::Time now) {
    return LogOf([&] { presence_.Recheck(now, [] { return std::string("; so be it"); }); });
  }

  const absl::Time start_ = absl::UnixEpoch() + absl::Hours(1);
  ClientTable clients_{{"worker:0", "worker:1"}, {}};
  Presence presence_{clients_};
  uint64_t incarnation_ = 0;
};

TEST_F(TableOfTwo, SaysOnceWhoIsSilentAndOnceThatHeIsBack) {
  Join("worker:1", 1, start_);
  EXPECT_EQ(presence_.NextCheck(start_), start_ + absl::Seconds(3));
  EXPECT_EQ(Recheck(start_ + absl::Seconds(2)), "");
  EXPECT_EQ(Recheck(start_ + absl::Seconds(3)), "") << "it may be started again at once";
  const absl::Time looks_again = presence_.NextCheck(start_ + absl::Seconds(3));
  EXPECT_EQ(looks_again, start_ + absl::Milliseconds(3500));
  EXPECT_THAT(Recheck(looks_again), HasSubstr("worker:1 is lost: it was not heard of for 3s; so be it\n"));
  EXPECT_EQ(Recheck(start_ + absl::Seconds(20)), "");
  EXPECT_EQ(presence_.NextCheck(start_ + absl::Seconds(20)), absl::InfiniteFuture());
  const Stamp stamp{.client = 1, .incarnation = 1};
  ASSERT_TRUE(clients_.Hear(stamp, ConnectionId{1}, start_ + absl::Seconds(21)).ok());
  EXPECT_THAT(Recheck(start_ + absl::Seconds(21)), HasSubstr("worker:1 is back; so be it\n"));
  EXPECT_EQ(Recheck(start_ + absl::Seconds(22)), "");
}

TEST_F(TableOfTwo, SaysNothingOfWhoWasOnlyReadLateIsDoneOrLeavesAfterTheEnd) {
  Join("worker:0", 1, start_);
  Join("worker:1", 2, start_);
  EXPECT_EQ(Recheck(start_ + absl::Seconds(30)), "");
  ASSERT_TRUE(clients_.Hear({.client = 0, .incarnation = 1}, ConnectionId{1}, start_ + absl::Seconds(30)).ok());
  clients_.SetDone(1, start_ + absl::Seconds(30));
  EXPECT_EQ(Recheck(start_ + absl::Seconds(31)), "");
  presence_.End();
  EXPECT_EQ(Recheck(start_ + absl::Seconds(50)), "");
  EXPECT_EQ(Recheck(start_ + absl::Seconds(60)), "");
  EXPECT_EQ(presence_.NextCheck(start_ + absl::Seconds(60)), absl::InfiniteFuture());
}

class SaysOfRounds : public ::testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(Elastic, SaysOfRounds, ::testing::Bool());

TEST_P(SaysOfRounds, WhatALossAndAReturnMeanForThem) {
  const bool elastic = GetParam();
  SimulatedStore store(1, {"worker:0", "worker:1"}, {.lease = absl::Hours(1), .disconnect_grace = absl::Seconds(3)});
  WorkerModel model({{.name = "w", .shape = {4}}}, RuleSpec{.learning_rate = 1}, 1);
  model.binding.gate = {GateKind::kSynchronous, 2, 2, elastic};
  ScriptedWorker chief(store, "worker:0", model, /*chief=*/true);
  auto other = std::make_unique<ScriptedWorker>(store, "worker:1", model);
  const std::string lost = LogOf([&] {
    other.reset();
    store.Pass(absl::Seconds(4));
  });
  EXPECT_THAT(lost, HasSubstr(elastic ? "worker:1 is lost: its connections broke 3s ago; rounds go on with 1 of 2\n"
                                      : "worker:1 is lost: its connections broke 3s ago; rounds wait, for each needs 2 "
                                        "workers: there is 1\n"));
  EXPECT_THAT(lost, Not(HasSubstr("worker:0 is")));
  const std::string back = LogOf([&] {
    other = std::make_unique<ScriptedWorker>(store, "worker:1", model);
    store.Pass(absl::Seconds(1));
  });
  EXPECT_THAT(back, AllOf(HasSubstr("worker:1 is back; rounds go on with 2 of 2\n"), Not(HasSubstr("lost"))));
}

}  // namespace
}  // namespace muster::presence_test
