// Queues between processes on a bad network: whatever is lost, cut or duplicated, each element is enqueued once and
// given out once; and every call ends, ps or no ps.
#include "muster/store/queues/queue_client.h"

#include <gmock/gmock.h>

#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/store/service/store_status.h"
#include "muster/store/testing/simulated_store.h"

namespace muster::queue_client_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr;

const QueueSpec kQueue = {"input", 3, {{DType::kInt64, {}}}};

std::vector<int64_t> ValuesOf(const QueueBatch& batch) {
  std::vector<int64_t> values(batch.bytes.size() / sizeof(int64_t));
  if (!values.empty()) std::memcpy(values.data(), batch.bytes.data(), batch.bytes.size());
  return values;
}

absl::Status Put(QueueClient& client, int64_t value, absl::Time deadline = absl::InfiniteFuture()) {
  return client.Enqueue({AsBytes(&value, 1)}, deadline);
}

class QueueClientTest : public ::testing::Test {
 protected:
  QueueClientOptions Options(const std::string& task) {
    return {.task = task, .new_lane = [this] { return ++lanes_; }, .stop_requested = [this] { return stop_; }};
  }
  std::unique_ptr<QueueClient> Client(const std::string& task, const QueueSpec& spec = kQueue) {
    return std::make_unique<QueueClient>(store_.client_transport(), store_.addresses()[0], spec, Options(task));
  }
  std::unique_ptr<QueueClient> Client(const std::string& task, FaultScript& script) {
    return std::make_unique<QueueClient>(store_.client_transport(script), store_.addresses()[0], kQueue, Options(task));
  }
  // Acts for another process while the one under test waits.
  void At(absl::Duration when, std::function<void()> what) {
    store_.loop.CallAt(store_.loop.Now() + when, std::move(what));
  }
  nlohmann::json Status() { return nlohmann::json::parse(StatusJson(store_.service(0).MakeView())); }
  absl::Time In(absl::Duration time) { return store_.loop.Now() + time; }

  SimulatedStore store_{1, {"worker:0", "worker:1"}};
  uint64_t lanes_ = 0;
  bool stop_ = false;
};

TEST_F(QueueClientTest, ElementsGoFromOneProcessToAnother) {
  auto producer = Client("worker:0");
  auto consumer = Client("evaluator:0");
  for (int64_t i = 1; i <= 3; ++i) EXPECT_EQ(Put(*producer, i), absl::OkStatus());
  EXPECT_EQ(consumer->Size(absl::InfiniteFuture())->size, 3U);
  EXPECT_THAT(ValuesOf(*consumer->Dequeue(1, false, absl::InfiniteFuture())), ElementsAre(1));
  EXPECT_THAT(ValuesOf(*consumer->Dequeue(2, false, absl::InfiniteFuture())), ElementsAre(2, 3));
  EXPECT_EQ(producer->Close(false, absl::InfiniteFuture()), absl::OkStatus());
  const auto none = consumer->Dequeue(1, false, absl::InfiniteFuture());
  EXPECT_TRUE(absl::IsOutOfRange(none.status())) << none.status();
  EXPECT_EQ(none.status().message(), "queue 'input' on ps:0 is closed and used up: 1 asked for, 0 there");
}

// Tries every kind of fault at every one of the first requests after the openings.
class QueueFaultTest : public QueueClientTest,
                       public ::testing::WithParamInterface<std::tuple<FaultKind, uint64_t, StoreMethod>> {};

TEST_P(QueueFaultTest, EachElementIsEnqueuedOnceAndGivenOutOnce) {
  const auto [kind, first, method] = GetParam();
  FaultScript script({{.kind = kind, .first = first, .times = 2, .method = static_cast<uint16_t>(method), .bytes = 3}});
  auto producer = Client("worker:0", script);
  auto consumer = Client("worker:1", script);
  std::vector<int64_t> got;
  for (int64_t i = 1; i <= 6; ++i) {
    ASSERT_EQ(Put(*producer, i), absl::OkStatus());
    if (i % 2 != 0) continue;
    const auto batch = consumer->Dequeue(2, false, absl::InfiniteFuture()).value();
    for (const int64_t value : ValuesOf(batch)) got.push_back(value);
  }
  EXPECT_THAT(got, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(script.met(), 2U);
  EXPECT_EQ(Status()["queues"][0]["enqueued"], 6);
  EXPECT_EQ(Status()["queues"][0]["dequeued"], 6);
  EXPECT_EQ(consumer->Size(absl::InfiniteFuture())->size, 0U);
}

INSTANTIATE_TEST_SUITE_P(Faults, QueueFaultTest,
                         ::testing::Combine(::testing::Values(FaultKind::kDropRequest, FaultKind::kDropReply,
                                                              FaultKind::kDelayRequest, FaultKind::kDuplicateRequest,
                                                              FaultKind::kCutRequest, FaultKind::kCutReply),
                                            ::testing::Values(1, 2),
                                            ::testing::Values(StoreMethod::kEnqueue, StoreMethod::kDequeue)));

TEST_F(QueueClientTest, AWaitThatLastsKeepsItsPlaceAndEndsWithTheElement) {
  auto producer = Client("worker:0");
  auto consumer = Client("worker:1");
  ASSERT_EQ(producer->Open(absl::InfiniteFuture()), absl::OkStatus());
  At(absl::Minutes(10), [&] {
    EXPECT_THAT(Status()["queues"][0]["waiting"][0]["what"].get<std::string>(), HasSubstr("1 more"));
    EXPECT_NEAR(Status()["queues"][0]["waiting"][0]["seconds"].get<double>(), 600, 1);
    EXPECT_EQ(Put(*producer, 7), absl::OkStatus());
  });
  const auto batch = consumer->Dequeue(1, false, absl::InfiniteFuture()).value();
  EXPECT_THAT(ValuesOf(batch), ElementsAre(7));
}

TEST_F(QueueClientTest, ADeadlineIsKept) {
  auto client = Client("worker:0");
  const absl::Time before = store_.loop.Now();
  const auto empty = client->Dequeue(1, false, In(absl::Seconds(30)));
  EXPECT_TRUE(absl::IsDeadlineExceeded(empty.status())) << empty.status();
  EXPECT_GE(store_.loop.Now() - before, absl::Seconds(30));
  EXPECT_LE(store_.loop.Now() - before, absl::Seconds(31));
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(Put(*client, i), absl::OkStatus());
  EXPECT_TRUE(absl::IsDeadlineExceeded(Put(*client, 9, In(absl::Seconds(1)))));
  EXPECT_EQ(client->Size(absl::InfiniteFuture())->size, 3U) << "nothing comes of it later";
}

TEST_F(QueueClientTest, ADeadlineIsKeptWithoutThePsToo) {
  auto client = Client("worker:0");
  ASSERT_EQ(client->Open(absl::InfiniteFuture()), absl::OkStatus());
  store_.KillPs(0);
  const absl::Time before = store_.loop.Now();
  EXPECT_TRUE(absl::IsDeadlineExceeded(Put(*client, 9, In(absl::Seconds(5)))));
  EXPECT_LE(store_.loop.Now() - before, absl::Seconds(7));
  const auto gone = client->Dequeue(1, false, absl::InfiniteFuture());
  EXPECT_TRUE(absl::IsUnavailable(gone.status())) << gone.status();
  EXPECT_LE(store_.loop.Now() - before, absl::Seconds(70)) << "its patience";
  EXPECT_TRUE(absl::IsDeadlineExceeded(Client("worker:1")->Open(In(absl::Seconds(2)))));
}

// 16 MiB at hardly 1 MiB a second.
TEST_F(QueueClientTest, WhoCannotReachThePsSaysSoWithTheLastError) {
  store_.KillPs(0);
  At(absl::Seconds(20), [&] { store_.StartPs(0); });
  auto client = Client("worker:0");
  ::testing::internal::CaptureStderr();
  SetUpLog("");
  EXPECT_EQ(client->Open(absl::InfiniteFuture()), absl::OkStatus());
  const std::string log = ::testing::internal::GetCapturedStderr();
  for (const char* since : {"5s", "15s"})
    EXPECT_THAT(log, HasSubstr(absl::StrCat("waiting since ", since,
                                            " for queue 'input' on ps:0 (ps0:2222): connection refused")));
}

TEST_F(QueueClientTest, ALargeElementOnASlowLinkIsNotBrokenOff) {
  const QueueSpec large = {"large", 2, {{DType::kInt64, {2 << 20}}}};
  FaultScript script({{.kind = FaultKind::kDelayRequest,
                       .times = 100,
                       .method = static_cast<uint16_t>(StoreMethod::kEnqueue),
                       .delay = absl::Seconds(20)},
                      {.kind = FaultKind::kDelayReply,
                       .times = 100,
                       .method = static_cast<uint16_t>(StoreMethod::kDequeue),
                       .delay = absl::Seconds(20)}});
  QueueClient client(store_.client_transport(script), store_.addresses()[0], large, Options("worker:0"));
  const std::vector<int64_t> element(2 << 20, 7);
  ASSERT_EQ(client.Enqueue({AsBytes(element.data(), element.size())}, In(absl::Minutes(10))), absl::OkStatus());
  EXPECT_EQ(script.met(), 1U) << "sent once";
  const auto batch = client.Dequeue(1, false, In(absl::Minutes(10))).value();
  EXPECT_EQ(ValuesOf(batch), element);
  EXPECT_EQ(script.met(), 2U);
}

TEST_F(QueueClientTest, ADequeueWhoseAnswerNeverCameHasItsElementsWithTheNextOne) {
  FaultScript script({{.kind = FaultKind::kDropReply, .method = static_cast<uint16_t>(StoreMethod::kDequeue)}});
  auto producer = Client("worker:0");
  auto consumer = Client("worker:1", script);
  ASSERT_EQ(Put(*producer, 1), absl::OkStatus());
  ASSERT_EQ(Put(*producer, 2), absl::OkStatus());
  EXPECT_TRUE(absl::IsDeadlineExceeded(consumer->Dequeue(1, false, In(absl::Seconds(3))).status()));
  EXPECT_TRUE(consumer->owed());
  EXPECT_TRUE(consumer->Owes(1, false));
  EXPECT_FALSE(consumer->Owes(2, false) || consumer->Owes(1, true)) << "another lane is to be taken for these";
  EXPECT_THAT(ValuesOf(*consumer->Dequeue(1, false, absl::InfiniteFuture())), ElementsAre(1));
  EXPECT_THAT(ValuesOf(*consumer->Dequeue(1, false, absl::InfiniteFuture())), ElementsAre(2));
}

TEST_F(QueueClientTest, APsThatWasRestartedHasLostItsQueuesAndSaysSoOnce) {
  auto client = Client("worker:0");
  ASSERT_EQ(Put(*client, 1), absl::OkStatus());
  store_.KillPs(0);
  store_.StartPs(0);
  const absl::Status lost = Put(*client, 2);
  EXPECT_TRUE(absl::IsAborted(lost)) << lost;
  EXPECT_EQ(Put(*client, 3), absl::OkStatus());
  EXPECT_THAT(ValuesOf(*client->Dequeue(1, false, absl::InfiniteFuture())), ElementsAre(3));
}

TEST_F(QueueClientTest, AWaitPassesAPsThatIsBackButHasLostTheQueue) {
  auto client = Client("worker:0");
  ASSERT_EQ(client->Open(absl::InfiniteFuture()), absl::OkStatus());
  At(absl::Seconds(5), [&] { store_.KillPs(0); });
  At(absl::Seconds(10), [&] { store_.StartPs(0); });
  const absl::Status lost = client->Dequeue(1, false, absl::InfiniteFuture()).status();
  EXPECT_TRUE(absl::IsAborted(lost)) << lost;
}

TEST_F(QueueClientTest, AKilledProducerOrConsumerTakesNothingAlong) {
  auto survivor = Client("worker:0");
  {
    auto waits = Client("worker:1");
    stop_ = false;
    At(absl::Seconds(1), [&] { stop_ = true; });
    EXPECT_TRUE(absl::IsCancelled(waits->Dequeue(2, false, absl::InfiniteFuture()).status()));
    stop_ = false;
  }
  store_.Pass(absl::Milliseconds(10));
  ASSERT_EQ(Put(*survivor, 1), absl::OkStatus());
  EXPECT_THAT(ValuesOf(*survivor->Dequeue(1, false, In(absl::Seconds(1)))), ElementsAre(1));
}

TEST_F(QueueClientTest, AStopEndsWaitsButNotTheClose) {
  auto waits = Client("worker:0");
  ASSERT_EQ(waits->Open(absl::InfiniteFuture()), absl::OkStatus());
  stop_ = true;
  EXPECT_TRUE(absl::IsCancelled(waits->Dequeue(1, false, absl::InfiniteFuture()).status()));
  EXPECT_EQ(Client("worker:0")->Close(true, absl::InfiniteFuture()), absl::OkStatus());
  EXPECT_EQ(Status()["queues"][0]["closed"], true);
}

TEST_F(QueueClientTest, AnotherCapacityIsRefusedWithBoth) {
  ASSERT_EQ(Client("worker:0")->Open(absl::InfiniteFuture()), absl::OkStatus());
  const absl::Status other = Client("worker:1", {"input", 5, kQueue.components})->Open(absl::InfiniteFuture());
  EXPECT_TRUE(absl::IsInvalidArgument(other));
  EXPECT_THAT(std::string(other.message()), AllOf(HasSubstr("capacity 3"), HasSubstr("capacity 5")));
}

TEST_F(QueueClientTest, AQueueWithoutACapacityIsToldWhatToGive) {
  const absl::Status status = Client("worker:0", {"input", 0, kQueue.components})->Open(absl::InfiniteFuture());
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("has no capacity: give .capacity"));
}

TEST_F(QueueClientTest, AnElementThatDoesNotFitNeverLeaves) {
  auto client = Client("worker:0");
  const float value = 1;
  const absl::Status status = client->Enqueue({AsBytes(&value, 1)}, absl::InfiniteFuture());
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("int64[]"), HasSubstr("4")));
  EXPECT_TRUE(absl::IsInvalidArgument(client->Enqueue({}, absl::InfiniteFuture())));
}

TEST_F(QueueClientTest, TheEndOfTrainingAnswersWhoWaits) {
  auto client = Client("worker:1");
  At(absl::Seconds(1), [&] { store_.service(0).Shutdown("a test"); });
  const absl::Status ended = client->Dequeue(1, false, absl::InfiniteFuture()).status();
  EXPECT_TRUE(absl::IsCancelled(ended)) << ended;
  EXPECT_TRUE(absl::IsCancelled(Put(*client, 1)));
}

TEST_F(QueueClientTest, TheStatusPageShowsWhoOfTheClientsWaits) {
  auto client = Client("worker:1");
  At(absl::Seconds(3), [&] {
    const nlohmann::json status = Status();
    EXPECT_EQ(status["clients"][0]["waiting_for"], "");
    EXPECT_THAT(status["clients"][1]["waiting_for"].get<std::string>(), HasSubstr("queue 'input'"));
    EXPECT_THAT(*StatusTable(status.dump()), AllOf(HasSubstr("queues"), HasSubstr("0 of 3 elements")));
  });
  EXPECT_FALSE(client->Dequeue(1, false, In(absl::Seconds(5))).ok());
}

}  // namespace
}  // namespace muster::queue_client_test
