#include "muster/collective/group/join_group.h"

#include <gmock/gmock.h>

#include <atomic>
#include <functional>
#include <optional>
#include <thread>

#include "muster/base/log.h"
#include "muster/collective/ring/rendezvous_messages.h"
#include "muster/collective/testing/group_in_threads.h"
#include "muster/transport/io/tcp_event_loop.h"
#include "muster/transport/tcp/tcp_transport.h"

namespace muster::join_group_test {
namespace {

using ::testing::ContainsRegex, ::testing::HasSubstr;
using Joined = absl::StatusOr<std::unique_ptr<Collective>>;

GroupOptions OptionsOf(int size, CollectiveChoice choice = CollectiveChoice::kAuto) {
  return {.names = RankNames(size), .addresses = FreeAddresses(size), .choice = choice};
}

// Every rank joins in its own thread, the last rank first, and then runs `then` there.
void JoinEach(const GroupOptions& options, const std::function<void(GroupOptions& mine, Joined)>& then) {
  std::vector<std::thread> threads;
  for (int rank = static_cast<int>(options.names.size()) - 1; rank >= 0; --rank)
    threads.emplace_back([&, rank] {
      GroupOptions mine = options;
      mine.rank = rank;
      Joined joined = JoinGroup(mine, Soon());
      then(mine, std::move(joined));
    });
  for (std::thread& thread : threads) thread.join();
}

std::vector<Joined> JoinAll(const GroupOptions& options) {
  std::vector<Joined> all(options.names.size());
  JoinEach(options, [&](GroupOptions& mine, Joined joined) { all[mine.rank] = std::move(joined); });
  return all;
}

void ExpectThatTheyAddUp(std::vector<Joined> joined) {
  const int size = static_cast<int>(joined.size());
  std::vector<std::unique_ptr<Collective>> group;
  for (Joined& one : joined) {
    ASSERT_EQ(one.status(), absl::OkStatus());
    group.push_back(*std::move(one));
  }
  AsEveryRank(std::move(group), [size](std::unique_ptr<Collective>& rank) {
    std::vector<float> data(1000, static_cast<float>(rank->rank()));
    ASSERT_EQ(rank->AllReduce({AsBytes(data.data(), data.size())}, {AsMutableBytes(data.data(), data.size())},
                              DType::kFloat32, Reduction::kSum, Soon()),
              absl::OkStatus());
    const int sum = size * (size - 1) / 2;
    EXPECT_EQ(data.back(), static_cast<float>(sum));
    EXPECT_EQ(rank->Barrier(Soon()), absl::OkStatus());
    rank->Leave();
  });
}

TEST(JoinGroupTest, RanksOfOneHostShareMemory) {
  for (const int size : {1, 2, 3}) {
    auto joined = JoinAll(OptionsOf(size));
    for (const Joined& one : joined) {
      ASSERT_EQ(one.status(), absl::OkStatus());
      EXPECT_EQ((*one)->kind(), "shm");
      EXPECT_EQ((*one)->size(), size);
    }
    ExpectThatTheyAddUp(std::move(joined));
  }
}

TEST(JoinGroupTest, ARingIfItIsAskedFor) {
  auto joined = JoinAll(OptionsOf(3, CollectiveChoice::kRing));
  ASSERT_EQ(joined[0].status(), absl::OkStatus());
  EXPECT_EQ((*joined[0])->kind(), "ring");
  ExpectThatTheyAddUp(std::move(joined));
}

// Rank 0's address in the ring is that of the rendezvous: an early rank must not mistake one for the other. Each rank
// goes on as soon as it can.
TEST(JoinGroupTest, ARingThatIsUsedAtOnce) {
  for (int again = 0; again < 20; ++again) {
    JoinEach(OptionsOf(3, CollectiveChoice::kRing), [](GroupOptions&, Joined joined) {
      ASSERT_EQ(joined.status(), absl::OkStatus());
      float number = 1;
      EXPECT_EQ((*joined)->Broadcast({AsMutableBytes(&number, 1)}, 0, Soon()), absl::OkStatus());
      EXPECT_EQ((*joined)->AllReduce({AsBytes(&number, 1)}, {AsMutableBytes(&number, 1)}, DType::kFloat32,
                                     Reduction::kSum, Soon()),
                absl::OkStatus());
      EXPECT_EQ(number, 3);
      EXPECT_EQ((*joined)->Barrier(Soon()), absl::OkStatus());
      (*joined)->Leave();
    });
  }
}

// Rank 2 has died before its neighbours had heard of it, and nothing else tells them.
TEST(JoinGroupTest, ARankThatWasStartedAgainBeforeTheRingKnewItEndsTheRing) {
  std::vector<absl::Status> ends(3);
  std::atomic<int> ended{0};
  JoinEach(OptionsOf(3, CollectiveChoice::kRing), [&](GroupOptions& mine, Joined joined) {
    ASSERT_EQ(joined.status(), absl::OkStatus());
    if (mine.rank != 2) {
      ends[mine.rank] = (*joined)->Barrier(Soon());
      ++ended;
      return;
    }
    joined->reset();
    mine.stop_requested = [&ended] { return ended == 2; };
    ends[mine.rank] = JoinGroup(mine, Soon()).status();
  });
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(ends[rank].code(), absl::StatusCode::kUnavailable) << ends[rank];
    EXPECT_THAT(ends[rank].message(), HasSubstr("worker:2"));
  }
}

// Rank 0 keeps listening as long as a rank that has its answer may still ask for kContinue.
TEST(JoinGroupTest, ARankThatEntersAgainWhenAllHaveTheirAnswerIsTurnedAwayAndNoOtherIs) {
  const GroupOptions options = OptionsOf(3, CollectiveChoice::kRing);
  std::thread rank_zero([&] { EXPECT_EQ(JoinGroup(options, Soon()).status(), absl::OkStatus()); });
  TcpEventLoop loop;
  TcpTransport transport(loop, options.token, {.shared_memory = {.enabled = false}});
  using Answer = std::optional<absl::StatusOr<Reply>>;
  const auto ask = [](Channel& channel, RendezvousMethod method, std::string control, Answer& answer) {
    channel.Call({.method = static_cast<uint16_t>(method), .control = std::move(control), .deadline = Soon()},
                 [&answer](absl::StatusOr<Reply>& reply) { answer = std::move(reply); });
  };
  const auto enter = [](uint32_t rank) {
    return Encode(EnterRequest{rank, 3, static_cast<uint32_t>(CollectiveChoice::kRing)});
  };
  std::unique_ptr<Channel> channels[] = {nullptr, transport.Connect(options.addresses[0]),
                                         transport.Connect(options.addresses[0]),
                                         transport.Connect(options.addresses[0])};
  Answer answers[4];
  const auto both = [&] { return answers[1] && answers[2]; };
  for (const uint32_t rank : {1, 2}) ask(*channels[rank], RendezvousMethod::kEnter, enter(rank), answers[rank]);
  ASSERT_TRUE(loop.RunUntil(both, Soon()));
  for (const uint32_t rank : {1, 2}) {
    ASSERT_EQ(answers[rank]->status(), absl::OkStatus());
    answers[rank].reset();
    ask(*channels[rank], RendezvousMethod::kAgree, Encode(AgreeRequest{rank, 0}), answers[rank]);
  }
  ASSERT_TRUE(loop.RunUntil(both, Soon()));
  channels[2].reset();
  ask(*channels[3], RendezvousMethod::kEnter, enter(2), answers[3]);
  ASSERT_TRUE(loop.RunUntil([&] { return answers[3].has_value(); }, Soon()));
  EXPECT_EQ(answers[3]->status().code(), absl::StatusCode::kUnavailable) << answers[3]->status();
  EXPECT_THAT(answers[3]->status().message(), HasSubstr("at work already"));
  channels[1].reset();
  rank_zero.join();
}

TEST(JoinGroupTest, WhoDoesNotComeIsNamedAtTheDeadline) {
  const auto joined = JoinGroup(OptionsOf(2), RealClock().Now() + absl::Milliseconds(30));
  EXPECT_EQ(joined.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(joined.status().message(), HasSubstr("worker:1"));
}

TEST(JoinGroupTest, WithoutRankZeroTheOthersWaitUntilTheDeadline) {
  GroupOptions options = OptionsOf(2);
  options.rank = 1;
  const auto joined = JoinGroup(options, RealClock().Now() + absl::Milliseconds(500));
  EXPECT_FALSE(joined.ok());
  EXPECT_THAT(joined.status().message(), HasSubstr("worker:0 (" + options.addresses[0] + ": connection refused)"));
}

TEST(JoinGroupTest, AWaitIsSaidAfterTwoSecondsWithWhomAndWhy) {
  GroupOptions options = OptionsOf(2);
  options.rank = 1;
  // Two seconds are over; the second question after that comes when the wait has been said.
  const absl::Time said_by = RealClock().Now() + absl::Seconds(2);
  int asked_since = 0;
  options.stop_requested = [&] { return RealClock().Now() >= said_by && ++asked_since > 2; };
  ::testing::internal::CaptureStderr();
  SetUpLog("");
  EXPECT_EQ(JoinGroup(options, Soon()).status().code(), absl::StatusCode::kCancelled);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ContainsRegex("Waiting since [0-9.]+s for worker:0 \\(" + options.addresses[0] +
                            ": connection refused\\) to train together"));
}

TEST(JoinGroupTest, AStopEndsTheWaiting) {
  for (const int rank : {0, 1}) {
    GroupOptions options = OptionsOf(2);
    options.rank = rank;
    options.stop_requested = [] { return true; };
    EXPECT_EQ(JoinGroup(options, Soon()).status().code(), absl::StatusCode::kCancelled);
  }
}

TEST(JoinGroupTest, AnotherJobIsKeptOut) {
  GroupOptions options = OptionsOf(2);
  options.token = {"the job's"};
  std::thread zero([options] {
    EXPECT_EQ(JoinGroup(options, RealClock().Now() + absl::Milliseconds(500)).status().code(),
              absl::StatusCode::kDeadlineExceeded);
  });
  options.rank = 1;
  options.token = {"another one's"};
  EXPECT_EQ(JoinGroup(options, Soon()).status().code(), absl::StatusCode::kPermissionDenied);
  zero.join();
}

TEST(JoinGroupTest, AnotherIdeaOfTheGroupIsNamedToBoth) {
  const GroupOptions options = OptionsOf(3);
  std::thread zero([options] {
    const absl::Status status = JoinGroup(options, Soon()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("one of 2"));
    EXPECT_THAT(status.message(), HasSubstr("one of 3"));
  });
  GroupOptions other = options;
  other.rank = 1;
  other.names.pop_back();
  other.addresses.pop_back();
  EXPECT_EQ(JoinGroup(other, Soon()).status().code(), absl::StatusCode::kInvalidArgument);
  zero.join();
}

// A rank that gives up while others wait stands for a process that was killed there; its restart takes its place.
TEST(JoinGroupTest, ARankThatIsStartedAgainTakesItsPlace) {
  const GroupOptions options = OptionsOf(3);
  std::vector<Joined> joined(3);
  std::vector<std::thread> threads;
  threads.emplace_back([&] { joined[0] = JoinGroup(options, Soon()); });
  GroupOptions second = options;
  second.rank = 1;
  EXPECT_FALSE(JoinGroup(second, RealClock().Now() + absl::Milliseconds(100)).ok());
  for (const int rank : {1, 2})
    threads.emplace_back([&, rank] {
      GroupOptions mine = options;
      mine.rank = rank;
      joined[rank] = JoinGroup(mine, Soon());
    });
  for (std::thread& thread : threads) thread.join();
  ExpectThatTheyAddUp(std::move(joined));
}

}  // namespace
}  // namespace muster::join_group_test
