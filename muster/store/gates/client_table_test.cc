#include "muster/store/gates/client_table.h"

#include <gmock/gmock.h>

#include <string>

namespace muster::client_table_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty;
using Phase = ClientTable::Phase;

constexpr ConnectionId kA{1};
constexpr ConnectionId kB{2};
constexpr ConnectionId kC{3};

class ClientTableTest : public ::testing::Test {
 protected:
  int Join(const std::string& task, uint64_t incarnation, ConnectionId connection) {
    return table_.Join({.task = task, .incarnation = incarnation, .where = "host, pid 1"}, connection, now_).value();
  }
  absl::Status TryJoin(const std::string& task, uint64_t incarnation, ConnectionId connection) {
    return table_.Join({.task = task, .incarnation = incarnation, .where = "host, pid 2"}, connection, now_).status();
  }
  absl::Status Hear(int client, uint64_t incarnation, ConnectionId connection) {
    return table_.Hear({static_cast<uint32_t>(client), incarnation, 0}, connection, now_);
  }
  // Moves to the next time at which the table must be looked at, as the store's timer does.
  Phase PassUntilNextChange() {
    now_ = table_.NextChange(now_);
    return table_.PhaseAt(now_);
  }
  bool Alive(int client) { return table_.Alive(table_.client(client), now_); }

  const LeaseOptions options_{.lease = absl::Seconds(10),
                              .disconnect_grace = absl::Seconds(3),
                              .late_join_grace = absl::Seconds(20),
                              .abandoned_after = absl::Minutes(5)};
  ClientTable table_{{"chief:0", "worker:0", "worker:1"}, options_};
  absl::Time now_ = absl::FromUnixSeconds(1000);
};

TEST_F(ClientTableTest, ATaskJoinsItsRow) {
  EXPECT_EQ(Join("worker:1", 7, kA), 2);
  EXPECT_EQ(Join("chief:0", 8, kB), 0);
  EXPECT_TRUE(Alive(2));
  EXPECT_FALSE(Alive(1)) << "never joined";
  EXPECT_EQ(Join("worker:1", 7, kA), 2) << "a join that is sent again";
  const absl::Status unknown = TryJoin("worker:2", 9, kC);
  EXPECT_TRUE(absl::IsNotFound(unknown));
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("worker:2"));
}

TEST_F(ClientTableTest, AnotherProcessOfALivingTaskIsRefusedAndSaysWhoLives) {
  Join("worker:0", 7, kA);
  now_ += absl::Seconds(4);
  const absl::Status second = TryJoin("worker:0", 8, kB);
  EXPECT_TRUE(absl::IsAlreadyExists(second));
  EXPECT_THAT(std::string(second.message()),
              AllOf(HasSubstr("worker:0"), HasSubstr("host, pid 1"), HasSubstr("4s ago")));
  EXPECT_EQ(Hear(1, 7, kA), absl::OkStatus()) << "the first is not disturbed";
}

// A launcher that can't reach the first one's host starts another, whatever the ps hear.
TEST_F(ClientTableTest, ALaterStartOfALivingTaskTakesItsPlaceForGood) {
  const auto join = [&](uint64_t incarnation, ConnectionId connection, uint64_t life) {
    return table_
        .Join({.task = "worker:0", .incarnation = incarnation, .where = "host", .life = life}, connection, now_)
        .status();
  };
  EXPECT_EQ(join(7, kA, 1), absl::OkStatus());
  EXPECT_TRUE(absl::IsAlreadyExists(join(8, kB, 1))) << "two processes of one start";
  EXPECT_EQ(join(8, kB, 2), absl::OkStatus());
  EXPECT_TRUE(absl::IsFailedPrecondition(Hear(1, 7, kA)));
  now_ += absl::Minutes(1);
  const absl::Status back = join(7, kA, 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(back)) << "although the later one is silent";
  EXPECT_THAT(std::string(back.message()), HasSubstr("start 1 of 2, has been replaced"));
  EXPECT_EQ(join(9, kC, 0), absl::OkStatus()) << "started by hand, once the other is dead";
}

TEST_F(ClientTableTest, ARestartedTaskWhoseConnectionIsClosedComesInAtOnce) {
  Join("worker:0", 7, kA);
  table_.Disconnect(kA, now_);
  EXPECT_EQ(Join("worker:0", 8, kB), 1);
  EXPECT_EQ(Hear(1, 8, kB), absl::OkStatus());
  const absl::Status old = Hear(1, 7, kC);
  EXPECT_TRUE(absl::IsFailedPrecondition(old));
  EXPECT_THAT(std::string(old.message()), HasSubstr("replaced by a newer process"));
}

TEST_F(ClientTableTest, ARestartedTaskWhoseConnectionStillLooksOpenWaitsForTheLease) {
  Join("worker:0", 7, kA);
  now_ += options_.lease - absl::Nanoseconds(1);
  EXPECT_TRUE(absl::IsAlreadyExists(TryJoin("worker:0", 8, kB)));
  now_ += absl::Nanoseconds(1);
  EXPECT_EQ(Join("worker:0", 8, kB), 1);
  // When the old connection ends, that is not a death of the new life.
  table_.Disconnect(kA, now_);
  now_ += options_.disconnect_grace;
  EXPECT_TRUE(Alive(1));
}

TEST_F(ClientTableTest, ATaskThatWasDoneMayComeAgain) {
  Join("worker:0", 7, kA);
  table_.SetDone(1, now_);
  EXPECT_EQ(Join("worker:0", 8, kB), 1);
  EXPECT_FALSE(table_.client(1).done);
}

TEST_F(ClientTableTest, HeartbeatsKeepALeaseAndSilenceLosesIt) {
  Join("worker:0", 7, kA);
  for (int i = 0; i < 10; ++i) {
    now_ += options_.lease - absl::Seconds(1);
    ASSERT_TRUE(Alive(1));
    ASSERT_EQ(Hear(1, 7, kB), absl::OkStatus());
  }
  now_ += options_.lease - absl::Nanoseconds(1);
  EXPECT_TRUE(Alive(1));
  now_ += absl::Nanoseconds(1);
  EXPECT_FALSE(Alive(1));
  EXPECT_EQ(Hear(1, 7, kB), absl::OkStatus()) << "a client that comes back in time is alive again";
  EXPECT_TRUE(Alive(1));
}

TEST_F(ClientTableTest, TheLastConnectionsEndIsADeathAfterAGrace) {
  Join("worker:0", 7, kA);
  EXPECT_EQ(Hear(1, 7, kB), absl::OkStatus());  // a second connection, as heartbeats have
  table_.Disconnect(kA, now_);
  now_ += options_.disconnect_grace;
  EXPECT_TRUE(Alive(1));
  table_.Disconnect(kB, now_);
  now_ += options_.disconnect_grace - absl::Nanoseconds(1);
  EXPECT_TRUE(Alive(1));
  now_ += absl::Nanoseconds(1);
  EXPECT_FALSE(Alive(1));
  EXPECT_EQ(Hear(1, 7, kC), absl::OkStatus()) << "a link that hiccuped";
  EXPECT_TRUE(Alive(1));
}

TEST_F(ClientTableTest, OnThisHostTheLastConnectionsEndIsADeathAtOnceButTheEndStillWaits) {
  table_.NoteOnThisHost(kA);
  table_.NoteOnThisHost(kB);
  Join("chief:0", 6, kC);
  Join("worker:0", 7, kA);
  ASSERT_TRUE(table_.ClaimChief(0, now_).ok());
  EXPECT_EQ(Hear(1, 7, kB), absl::OkStatus());
  table_.SetDone(0, now_);
  table_.Disconnect(kA, now_);
  EXPECT_TRUE(Alive(1)) << "its heartbeats' connection is open";
  table_.Disconnect(kB, now_);
  EXPECT_FALSE(Alive(1));
  EXPECT_THAT(table_.WaitedFor(now_), ElementsAre("worker:0", "worker:1 (never joined)"))
      << "a restarted one would find no ps";
  now_ += options_.disconnect_grace;
  EXPECT_THAT(table_.WaitedFor(now_), ElementsAre("worker:1 (never joined)"));
  // The same row, from elsewhere: its link may have hiccuped.
  Join("worker:0", 8, kC);
  table_.Disconnect(kC, now_);
  EXPECT_TRUE(Alive(1));
}

TEST_F(ClientTableTest, AClientThatIsHeardButHearsNothingIsDeadByTheLease) {
  Join("worker:0", 7, kA);
  const auto beat = [&](uint64_t number, uint64_t heard) {
    now_ += absl::Seconds(2);
    ASSERT_EQ(Hear(1, 7, kB), absl::OkStatus());
    table_.TakeBeat({.stamp = {1, 7, 0}, .beat = number, .heard = heard}, now_);
  };
  for (uint64_t number = 1; number <= 20; ++number) beat(number, number < 3 ? 0 : number - 3);
  EXPECT_TRUE(Alive(1)) << "answers that take 6 s come all the same";
  for (uint64_t number = 21; number <= 24; ++number) beat(number, 17);
  EXPECT_TRUE(Alive(1));
  beat(25, 17);
  EXPECT_FALSE(Alive(1)) << "10 s";
  beat(26, 25);
  EXPECT_TRUE(Alive(1)) << "the link is whole again";
  now_ += absl::Seconds(9);
  ASSERT_EQ(Hear(1, 7, kA), absl::OkStatus());
  now_ += absl::Seconds(9);
  EXPECT_TRUE(Alive(1)) << "only beats say something of what it hears";
}

TEST_F(ClientTableTest, APsThatIsLateReadsBeforeItJudges) {
  Join("worker:0", 7, kA);
  Join("worker:1", 8, kB);
  now_ += absl::Seconds(5);
  ASSERT_EQ(Hear(2, 8, kB), absl::OkStatus());
  now_ += absl::Seconds(5);
  EXPECT_FALSE(Alive(1)) << "dead before the ps was stopped";
  table_.Plan(table_.NextDeath(now_));
  EXPECT_EQ(table_.OnTurn(now_ + absl::Seconds(1)), absl::ZeroDuration());
  now_ += absl::Seconds(65);
  EXPECT_EQ(table_.OnTurn(now_), absl::Minutes(1));
  EXPECT_EQ(table_.OnTurn(now_), absl::ZeroDuration()) << "once";
  EXPECT_FALSE(Alive(1));
  EXPECT_TRUE(Alive(2));
  EXPECT_EQ(table_.NextDeath(now_), now_ + ClientTable::kReadFirst);
  now_ += ClientTable::kReadFirst;
  EXPECT_FALSE(Alive(2)) << "it has sent nothing";
}

TEST_F(ClientTableTest, AnExcludedClientIsNotWaitedForThoughItIsHeard) {
  Join("chief:0", 6, kA);
  Join("worker:0", 7, kB);
  ASSERT_TRUE(table_.ClaimChief(0, now_).ok());
  table_.Exclude(1, "it hangs");
  EXPECT_FALSE(Alive(1));
  EXPECT_TRUE(table_.Heard(table_.client(1), now_));
  EXPECT_EQ(Hear(1, 7, kB), absl::OkStatus());
  EXPECT_FALSE(Alive(1)) << "hearing of it was never the question";
  table_.SetDone(0, now_);
  EXPECT_THAT(table_.WaitedFor(now_), ElementsAre("worker:1 (never joined)"));
  table_.Readmit(1);
  EXPECT_TRUE(Alive(1));
  table_.Exclude(1, "it hangs");
  Join("worker:0", 7, kB);
  EXPECT_TRUE(Alive(1)) << "a join is progress";
}

TEST_F(ClientTableTest, WhoNeverJoinedHereIsToldThatThePsWasRestarted) {
  EXPECT_TRUE(absl::IsAborted(Hear(1, 7, kA)));
  EXPECT_TRUE(absl::IsAborted(Hear(99, 7, kA)));
}

TEST_F(ClientTableTest, ASecondChiefIsRefusedAndTheHolderNamed) {
  const int first = Join("worker:0", 7, kA);
  const int second = Join("worker:1", 8, kB);
  EXPECT_EQ(*table_.ClaimChief(first, now_), 1u);
  const auto refused = table_.ClaimChief(second, now_);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status()));
  EXPECT_THAT(std::string(refused.status().message()),
              AllOf(HasSubstr("worker:1 says it is the chief"), HasSubstr("worker:0 (host, pid 1)")));
  EXPECT_EQ(table_.chief(), first);
  EXPECT_EQ(table_.CheckChief({static_cast<uint32_t>(first), 7, 0}, 1), absl::OkStatus());
}

TEST_F(ClientTableTest, ARestartedChiefGetsTheNextEpochAndTheOldOneIsRefused) {
  const int chief = Join("chief:0", 7, kA);
  const uint64_t old_epoch = *table_.ClaimChief(chief, now_);
  table_.Disconnect(kA, now_);
  EXPECT_EQ(Join("chief:0", 8, kB), chief);
  const uint64_t epoch = *table_.ClaimChief(chief, now_);
  EXPECT_GT(epoch, old_epoch);
  const Stamp stamp = {static_cast<uint32_t>(chief), 8, 0};
  EXPECT_EQ(table_.CheckChief(stamp, epoch), absl::OkStatus());
  EXPECT_TRUE(absl::IsFailedPrecondition(table_.CheckChief(stamp, old_epoch)));
}

TEST_F(ClientTableTest, AClaimThatIsSentAgainKeepsItsEpoch) {
  const int chief = Join("chief:0", 7, kA);
  const uint64_t epoch = *table_.ClaimChief(chief, now_);
  EXPECT_EQ(Join("chief:0", 7, kB), chief);
  EXPECT_EQ(*table_.ClaimChief(chief, now_), epoch) << "the first answer may be the one that the chief sees";
}

TEST_F(ClientTableTest, AnotherTaskBecomesChiefWhenTheHolderIsDeadOrDone) {
  const int first = Join("worker:0", 7, kA);
  const int second = Join("worker:1", 8, kB);
  ASSERT_EQ(*table_.ClaimChief(first, now_), 1u);
  table_.Disconnect(kA, now_);
  EXPECT_FALSE(table_.ClaimChief(second, now_).ok()) << "the grace of the first is not over";
  now_ += options_.disconnect_grace;
  EXPECT_EQ(*table_.ClaimChief(second, now_), 2u);
  const absl::Status old = table_.CheckChief({static_cast<uint32_t>(first), 7, 0}, 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(old));
  EXPECT_THAT(std::string(old.message()),
              AllOf(HasSubstr("worker:0 is not the chief any more"), HasSubstr("worker:1")));
  table_.SetDone(second, now_);
  EXPECT_EQ(*table_.ClaimChief(first, now_), 3u);
}

TEST_F(ClientTableTest, TheEndIsWhenTheChiefAndAllOthersAreDone) {
  for (int i = 0; i < 3; ++i) Join(table_.clients()[i].task, 7 + i, ConnectionId(i + 1));
  ASSERT_TRUE(table_.ClaimChief(0, now_).ok());
  EXPECT_EQ(table_.PhaseAt(now_), Phase::kTraining);
  table_.SetDone(1, now_);
  table_.SetDone(2, now_);
  EXPECT_EQ(table_.PhaseAt(now_), Phase::kTraining) << "the chief still trains";
  table_.SetDone(0, now_);
  EXPECT_EQ(table_.PhaseAt(now_), Phase::kEnded);
  EXPECT_THAT(table_.WaitedFor(now_), IsEmpty());
  EXPECT_THAT(table_.NotDone(), IsEmpty());
}

TEST_F(ClientTableTest, TheEndWaitsForALivingWorkerAndNotForADeadOne) {
  for (int i = 0; i < 3; ++i) Join(table_.clients()[i].task, 7 + i, ConnectionId(i + 1));
  ASSERT_TRUE(table_.ClaimChief(0, now_).ok());
  table_.SetDone(0, now_);
  table_.SetDone(1, now_);
  EXPECT_EQ(table_.PhaseAt(now_), Phase::kTraining);
  EXPECT_THAT(table_.WaitedFor(now_), ElementsAre("worker:1"));
  EXPECT_EQ(table_.NextChange(now_), now_ + options_.lease);
  now_ += absl::Seconds(9);
  EXPECT_EQ(Hear(2, 9, kC), absl::OkStatus());
  now_ += absl::Seconds(1);
  EXPECT_EQ(table_.PhaseAt(now_), Phase::kTraining) << "its heartbeat came";
  EXPECT_EQ(PassUntilNextChange(), Phase::kEnded) << "its lease has run out";
  EXPECT_THAT(table_.NotDone(), ElementsAre("worker:1"));
}

TEST_F(ClientTableTest, TheEndWaitsAWhileForWhoNeverJoined) {
  Join("chief:0", 7, kA);
  Join("worker:0", 8, kB);
  ASSERT_TRUE(table_.ClaimChief(0, now_).ok());
  table_.SetDone(1, now_);
  now_ += absl::Hours(1);
  table_.SetDone(0, now_);
  EXPECT_EQ(table_.PhaseAt(now_), Phase::kTraining);
  EXPECT_THAT(table_.WaitedFor(now_), ElementsAre("worker:1 (never joined)"));
  EXPECT_EQ(table_.NextChange(now_), now_ + options_.late_join_grace) << "counted from the chief's end";
  EXPECT_EQ(PassUntilNextChange(), Phase::kEnded);
  EXPECT_THAT(table_.NotDone(), ElementsAre("worker:1 (never joined)"));
}

TEST_F(ClientTableTest, WhoJoinsLateIsWaitedFor) {
  Join("chief:0", 7, kA);
  Join("worker:0", 8, kB);
  ASSERT_TRUE(table_.ClaimChief(0, now_).ok());
  table_.SetDone(0, now_);
  table_.SetDone(1, now_);
  now_ += options_.late_join_grace - absl::Seconds(1);
  Join("worker:1", 9, kC);
  now_ += absl::Seconds(2);
  EXPECT_EQ(table_.PhaseAt(now_), Phase::kTraining);
  table_.SetDone(2, now_);
  EXPECT_EQ(table_.PhaseAt(now_), Phase::kEnded);
}

TEST_F(ClientTableTest, ARestartedChiefTakesTheEndBack) {
  Join("chief:0", 7, kA);
  ASSERT_TRUE(table_.ClaimChief(0, now_).ok());
  Join("worker:0", 8, kB);
  table_.SetDone(0, now_);
  Join("chief:0", 9, kC);
  ASSERT_TRUE(table_.ClaimChief(0, now_).ok());
  now_ += options_.late_join_grace;
  EXPECT_EQ(Hear(0, 9, kC), absl::OkStatus());
  EXPECT_EQ(table_.PhaseAt(now_), Phase::kTraining);
}

TEST_F(ClientTableTest, EveryoneGoneWithoutTheChiefSayingDoneIsAbandonment) {
  EXPECT_EQ(table_.PhaseAt(now_), Phase::kTraining) << "nobody came yet: that may take as long as it likes";
  now_ += absl::Hours(24);
  EXPECT_EQ(table_.PhaseAt(now_), Phase::kTraining);
  Join("chief:0", 7, kA);
  Join("worker:0", 8, kB);
  ASSERT_TRUE(table_.ClaimChief(0, now_).ok());
  const absl::Time last_heard = now_;
  table_.SetDone(1, now_);
  table_.Disconnect(kA, now_);
  while (now_ < last_heard + options_.abandoned_after) {
    ASSERT_EQ(table_.PhaseAt(now_), Phase::kTraining) << "a restarted chief would find its model";
    const absl::Time next = table_.NextChange(now_);
    ASSERT_GT(next, now_);
    now_ = next;
  }
  EXPECT_EQ(now_, last_heard + options_.abandoned_after);
  EXPECT_EQ(table_.PhaseAt(now_), Phase::kAbandoned);
}

TEST_F(ClientTableTest, ADeadChiefIsNoEndWhileAWorkerTrains) {
  Join("chief:0", 7, kA);
  Join("worker:0", 8, kB);
  ASSERT_TRUE(table_.ClaimChief(0, now_).ok());
  table_.Disconnect(kA, now_);
  for (int i = 0; i < 100; ++i) {
    now_ += absl::Seconds(9);
    ASSERT_EQ(Hear(1, 8, kB), absl::OkStatus());
    ASSERT_EQ(table_.PhaseAt(now_), Phase::kTraining);
  }
}

TEST_F(ClientTableTest, AfterAnOrderToEndWhoLivesIsWaitedForUntilItSaysDoneOrDies) {
  EXPECT_EQ(table_.LastLeaves(now_), absl::InfinitePast()) << "nobody is there";
  Join("chief:0", 7, kA);
  Join("worker:0", 8, kB);
  EXPECT_EQ(table_.LastLeaves(now_), now_ + options_.lease);
  table_.SetDone(0, now_);
  table_.Disconnect(kB, now_);
  EXPECT_EQ(table_.LastLeaves(now_), now_ + options_.disconnect_grace);
  now_ += options_.disconnect_grace;
  EXPECT_EQ(table_.LastLeaves(now_), absl::InfinitePast());
}

}  // namespace
}  // namespace muster::client_table_test
