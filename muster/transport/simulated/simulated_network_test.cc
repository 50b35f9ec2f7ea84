// Faults by count where nothing else takes any time, so that the clock shows how long they took.
#include "muster/transport/simulated/simulated_network.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "muster/transport/simulated/simulated_transport.h"
#include "muster/transport/testing/scripted_handler.h"

namespace muster::simulated_network_test {
namespace {

using Method = ScriptedHandler::Method;

class SimulatedNetworkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    listener_ = *transport_.Listen("ps:2222", handler_);
    channel_ = transport_.Connect("ps:2222");
  }

  absl::StatusOr<Reply> Ask(Request request) {
    if (request.method == 0) request.method = Method::kEcho;
    if (request.deadline == absl::InfiniteFuture()) request.deadline = loop_.Now() + absl::Seconds(10);
    const absl::Time start = loop_.Now();
    std::optional<absl::StatusOr<Reply>> result;
    channel_->Call(request, [&](absl::StatusOr<Reply> reply) { result = std::move(reply); });
    loop_.RunUntil([&] { return result.has_value(); }, start + absl::Seconds(60));
    took_ = loop_.Now() - start;
    if (!result) return absl::InternalError("the test has waited in vain");
    return *std::move(result);
  }

  SimulatedWorld world_;
  EventLoop& loop_ = world_.loop();
  SimulatedNetwork network_{loop_};
  FaultScript script_;
  SimulatedTransport transport_{network_, loop_, &script_};
  ScriptedHandler handler_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Channel> channel_;
  absl::Duration took_;
};

TEST_F(SimulatedNetworkTest, WithoutFaultsItIsTransparent) {
  const std::vector<std::byte> bulk = Pattern(1000);
  std::vector<std::byte> into(1000);
  absl::StatusOr<Reply> reply = Ask({.control = "a", .bulk = {ByteSpan(bulk)}, .into = {MutableByteSpan(into)}});
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->control, "a");
  EXPECT_TRUE(into == bulk);
  EXPECT_EQ(channel_->peer(), "ps:2222");
  EXPECT_EQ(channel_->stats().calls, 1);
  EXPECT_EQ(script_.met(), 0);
}

TEST_F(SimulatedNetworkTest, TheSecondRequestOfAMethodIsDropped) {
  script_.Add({.kind = FaultKind::kDropRequest, .first = 2, .method = Method::kEcho});
  EXPECT_TRUE(Ask({.control = "first"}).ok());
  EXPECT_EQ(Ask({.method = Method::kFail}).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Ask({.control = "second"}).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(took_, absl::Seconds(10));
  EXPECT_TRUE(Ask({.control = "third"}).ok());
  EXPECT_THAT(handler_.controls, ::testing::ElementsAre("first", "", "third"));
  EXPECT_EQ(script_.met(), 1);
}

TEST_F(SimulatedNetworkTest, ADroppedReplyWasCarriedOut) {
  script_.Add({.kind = FaultKind::kDropReply});
  EXPECT_EQ(Ask({.control = "a"}).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(handler_.controls, ::testing::ElementsAre("a"));
  EXPECT_EQ(handler_.Count("disconnect"), 0);
}

TEST_F(SimulatedNetworkTest, DelaysTakeTheTimeTheySay) {
  script_.Add({.kind = FaultKind::kDelayRequest, .first = 1, .delay = absl::Seconds(2)});
  script_.Add({.kind = FaultKind::kDelayReply, .first = 2, .delay = absl::Seconds(3)});
  script_.Add({.kind = FaultKind::kDelayReply, .first = 3, .delay = absl::Seconds(11)});
  EXPECT_TRUE(Ask({}).ok());
  EXPECT_EQ(took_, absl::Seconds(2));
  EXPECT_TRUE(Ask({}).ok());
  EXPECT_EQ(took_, absl::Seconds(3));
  EXPECT_EQ(Ask({}).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(took_, absl::Seconds(10));
  EXPECT_TRUE(Ask({}).ok());
}

TEST_F(SimulatedNetworkTest, ADuplicateArrivesTwiceAndIsAnsweredOnce) {
  script_.Add({.kind = FaultKind::kDuplicateRequest});
  const std::vector<std::byte> bulk = Pattern(100);
  std::vector<std::byte> into(100);
  EXPECT_TRUE(Ask({.control = "a", .bulk = {ByteSpan(bulk)}, .into = {MutableByteSpan(into)}}).ok());
  EXPECT_TRUE(into == bulk);
  world_.RunReady();
  EXPECT_THAT(handler_.controls, ::testing::ElementsAre("a", "a"));
  EXPECT_EQ(handler_.Count("prepare 100"), 2);
}

TEST_F(SimulatedNetworkTest, ACutRequestIsntHandledAndACutReplyIs) {
  script_.Add({.kind = FaultKind::kCutRequest, .first = 2, .bytes = 50});
  script_.Add({.kind = FaultKind::kCutReply, .first = 3});
  const std::vector<std::byte> bulk = Pattern(100);
  ASSERT_TRUE(Ask({.control = "1"}).ok());
  EXPECT_EQ(Ask({.control = "2", .bulk = {ByteSpan(bulk)}}).status().code(), absl::StatusCode::kUnavailable);
  world_.RunReady();  // the server sees it after the client
  EXPECT_EQ(handler_.Count("prepare 100"), 1);
  EXPECT_EQ(handler_.targets, 0);
  EXPECT_EQ(handler_.Count("disconnect"), 1);
  EXPECT_EQ(Ask({.control = "3"}).status().code(), absl::StatusCode::kUnavailable);
  world_.RunReady();
  EXPECT_EQ(handler_.Count("disconnect"), 2);
  EXPECT_TRUE(Ask({.control = "4"}).ok());
  EXPECT_THAT(handler_.controls, ::testing::ElementsAre("1", "3", "4"));
  EXPECT_EQ(handler_.Count("connect"), 3);
}

// The connection breaks in the middle of a message: nothing is handled, memory is given back, the next call works.
TEST_F(SimulatedNetworkTest, ACutInMidMessage) {
  const std::vector<std::byte> bulk(5000000);
  const std::vector<size_t> places = {0, 3, 4, 2000000, 999999999};
  for (size_t i = 0; i < places.size(); ++i)
    script_.Add({.kind = FaultKind::kCutRequest, .first = 1 + 2 * i, .bytes = places[i]});
  for (const size_t after : places) {
    EXPECT_EQ(Ask({.control = "four", .bulk = {ByteSpan(bulk)}}).status().code(), absl::StatusCode::kUnavailable)
        << after;
    EXPECT_TRUE(Ask({}).ok()) << after;
  }
  EXPECT_EQ(handler_.Count("disconnect"), 5);
  EXPECT_EQ(handler_.Count("connect"), 6);
  EXPECT_EQ(handler_.Count("handle 1"), 5) << "only the calls in between";
  EXPECT_EQ(handler_.Count("prepare 5000000"), 3);
  EXPECT_EQ(handler_.targets, 0);
}

TEST_F(SimulatedNetworkTest, RefusedForAWhile) {
  script_.Add({.kind = FaultKind::kRefuse, .first = 2, .delay = absl::Seconds(8)});
  ASSERT_TRUE(Ask({.control = "1"}).ok());
  EXPECT_EQ(Ask({.control = "2"}).status().code(), absl::StatusCode::kUnavailable);
  const absl::Status status = Ask({.control = "3", .deadline = loop_.Now() + absl::Seconds(5)}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(status.message(), "ps:2222 could not be reached within 5s: connection refused");
  EXPECT_TRUE(Ask({.control = "4"}).ok());
  EXPECT_GE(took_, absl::Seconds(3));
  EXPECT_THAT(handler_.controls, ::testing::ElementsAre("1", "4"));
  EXPECT_EQ(handler_.Count("disconnect"), 1);
}

TEST_F(SimulatedNetworkTest, OnlyThePeerThatIsMeant) {
  script_.Add({.kind = FaultKind::kDropRequest, .peer = "ps:3333"});
  EXPECT_TRUE(Ask({}).ok());
  ScriptedHandler other_handler;
  const std::unique_ptr<Listener> other = *transport_.Listen("ps:3333", other_handler);
  channel_ = transport_.Connect("ps:3333");
  EXPECT_FALSE(Ask({}).ok());
  EXPECT_TRUE(Ask({}).ok());
}

TEST_F(SimulatedNetworkTest, CancelAndTheChannelsEndReachCallsThatAreHeldBack) {
  script_.Add({.kind = FaultKind::kDelayRequest, .times = 2, .delay = absl::Seconds(5)});
  script_.Add({.kind = FaultKind::kDelayReply, .first = 3, .delay = absl::Seconds(5)});
  std::vector<absl::StatusCode> ends;
  auto note = [&](const absl::StatusOr<Reply>& reply) { ends.push_back(reply.status().code()); };
  const Channel::CallId first = channel_->Call({.method = Method::kEcho}, note);
  world_.RunReady();
  channel_->Cancel(first);
  EXPECT_TRUE(ends.empty());
  world_.RunReady();
  EXPECT_EQ(ends.size(), 1);
  for (int i = 0; i < 3; ++i) channel_->Call({.method = Method::kEcho}, note);
  world_.RunReady();
  EXPECT_EQ(ends.size(), 2) << "the one without a fault";
  channel_ = nullptr;
  loop_.RunUntil([] { return false; }, loop_.Now() + absl::Seconds(20));
  EXPECT_THAT(ends, ::testing::ElementsAre(absl::StatusCode::kCancelled, absl::StatusCode::kOk,
                                           absl::StatusCode::kCancelled, absl::StatusCode::kCancelled));
}

}  // namespace
}  // namespace muster::simulated_network_test
