// Checks the threads of a QueueRunner against TensorFlow's rules (python/training/queue_runner_impl.py), with a queue
// of the test's own, and with a real one in a process without a cluster.
#include "muster/train/tensorflow/queue_runner.h"

#include <gmock/gmock.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "muster/train/node/node.h"

namespace muster::queue_runner_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty;

// Remembers how it was closed; when full, it blocks until it is closed with cancel_pending.
class FakeQueue {
 public:
  absl::Status Close(bool cancel_pending) {
    const MutexLock lock(mutex_);
    closes_.push_back(cancel_pending);
    changed_.NotifyAll();
    return close_status;
  }
  absl::Status EnqueueWhenFull() {
    const MutexLock lock(mutex_);
    while (closes_.empty() || !closes_.back()) changed_.Wait(mutex_);
    return absl::CancelledError("closed");
  }
  std::vector<bool> AwaitClose() {
    const MutexLock lock(mutex_);
    while (closes_.empty()) changed_.Wait(mutex_);
    return closes_;
  }
  std::vector<bool> closes() {
    const MutexLock lock(mutex_);
    return closes_;
  }

  absl::Status close_status;

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<bool> closes_ ABSL_GUARDED_BY(mutex_);
};

QueueRunnerOptions Options(FakeQueue& queue, std::vector<std::function<absl::Status()>> enqueue) {
  return {.name = "input", .enqueue = std::move(enqueue), .close = [&queue](bool cancel_pending) {
            return queue.Close(cancel_pending);
          }};
}

// Returns OutOfRange after `count` calls.
std::function<absl::Status()> UsedUpAfter(int count, std::atomic<int>& calls) {
  return [left = count, &calls]() mutable {
    if (left-- == 0) return absl::OutOfRangeError("no more");
    ++calls;
    return absl::OkStatus();
  };
}

TEST(QueueRunnerTest, TheLastThreadWhoseInputIsUsedUpClosesTheQueue) {
  FakeQueue queue;
  Coordinator coordinator;
  std::atomic<int> calls = 0;
  {
    QueueRunner runner(Options(queue, {UsedUpAfter(5, calls), UsedUpAfter(50, calls), UsedUpAfter(0, calls)}));
    ASSERT_EQ(runner.Start(coordinator), absl::OkStatus());
    EXPECT_THAT(queue.AwaitClose(), ElementsAre(false)) << "those that wait for room are let in";
    EXPECT_EQ(calls, 55);
    EXPECT_FALSE(coordinator.ShouldStop()) << "consumers continue with the remaining elements";
    coordinator.RequestStop();
    EXPECT_EQ(coordinator.Join(), absl::OkStatus());
  }
  EXPECT_THAT(queue.closes(), ElementsAre(false, true));
}

TEST(QueueRunnerTest, AnErrorStopsEverybodyAndJoinReturnsIt) {
  FakeQueue queue;
  Coordinator coordinator;
  QueueRunner runner(
      Options(queue, {[] { return absl::DataLossError("a bad record"); }, [&] { return queue.EnqueueWhenFull(); }}));
  ASSERT_EQ(runner.Start(coordinator), absl::OkStatus());
  const absl::Status joined = coordinator.Join();
  EXPECT_TRUE(absl::IsDataLoss(joined)) << joined;
  EXPECT_THAT(queue.closes(), ElementsAre(true)) << "and the enqueue that waited for room is cancelled";
}

TEST(QueueRunnerTest, SoDoesAnException) {
  FakeQueue queue;
  Coordinator coordinator;
  QueueRunner runner(Options(queue, {[]() -> absl::Status { throw std::runtime_error("no such file"); }}));
  ASSERT_EQ(runner.Start(coordinator), absl::OkStatus());
  EXPECT_THAT(std::string(coordinator.Join().message()), HasSubstr("no such file"));
  EXPECT_NE(coordinator.requested_exception(), nullptr);
}

TEST(QueueRunnerTest, AStopEndsThreadsThatWaitForRoom) {
  FakeQueue queue;
  Coordinator coordinator;
  QueueRunner runner(
      Options(queue, {[&] { return queue.EnqueueWhenFull(); }, [&] { return queue.EnqueueWhenFull(); }}));
  ASSERT_EQ(runner.Start(coordinator), absl::OkStatus());
  EXPECT_THAT(queue.closes(), IsEmpty());
  coordinator.RequestStop();
  EXPECT_EQ(coordinator.Join(), absl::OkStatus());
  EXPECT_THAT(queue.closes(), ElementsAre(true));
}

TEST(QueueRunnerTest, AQueueThatSomebodyElseClosedEndsTheThreadsQuietly) {
  FakeQueue queue;
  Coordinator coordinator;
  QueueRunner runner(Options(queue, {[&] { return queue.EnqueueWhenFull(); }}));
  ASSERT_EQ(runner.Start(coordinator), absl::OkStatus());
  ASSERT_EQ(queue.Close(true), absl::OkStatus());
  coordinator.RequestStop();
  EXPECT_EQ(coordinator.Join(), absl::OkStatus());
}

TEST(QueueRunnerTest, AQueueThatCannotBeClosedIsNoError) {
  FakeQueue queue;
  queue.close_status = absl::UnavailableError("the ps is gone");
  Coordinator coordinator;
  std::atomic<int> calls = 0;
  QueueRunner runner(Options(queue, {UsedUpAfter(1, calls)}));
  ASSERT_EQ(runner.Start(coordinator), absl::OkStatus());
  queue.AwaitClose();
  coordinator.RequestStop();
  EXPECT_EQ(coordinator.Join(), absl::OkStatus());
}

// As when the training loop throws.
TEST(QueueRunnerTest, LeavingItsScopeStopsTheThreads) {
  FakeQueue queue;
  Coordinator coordinator;
  {
    QueueRunner runner(Options(queue, {[&] { return queue.EnqueueWhenFull(); }}));
    ASSERT_EQ(runner.Start(coordinator), absl::OkStatus());
  }
  EXPECT_TRUE(coordinator.ShouldStop());
  EXPECT_THAT(queue.closes(), ElementsAre(true));
  EXPECT_EQ(coordinator.Join(), absl::OkStatus());
}

// As in a session that has recovered: the runner's threads have ended, and others use the coordinator.
TEST(QueueRunnerTest, OneThatWasStoppedStopsNobodyWhenItGoes) {
  FakeQueue queue;
  Coordinator coordinator;
  {
    QueueRunner runner(Options(queue, {}));
    ASSERT_EQ(runner.Start(coordinator), absl::OkStatus());
    coordinator.RequestStop();
    ASSERT_EQ(coordinator.Join(), absl::OkStatus());
    ASSERT_EQ(coordinator.ClearStop(), absl::OkStatus());
  }
  EXPECT_FALSE(coordinator.ShouldStop());
}

TEST(QueueRunnerTest, ItMayOutliveItsCoordinator) {
  FakeQueue queue;
  auto coordinator = std::make_unique<Coordinator>();
  QueueRunner runner(Options(queue, {[&] { return queue.EnqueueWhenFull(); }}));
  ASSERT_EQ(runner.Start(*coordinator), absl::OkStatus());
  coordinator.reset();
  EXPECT_THAT(queue.closes(), ElementsAre(true));
}

TEST(QueueRunnerTest, StartsOnce) {
  FakeQueue queue;
  Coordinator coordinator;
  QueueRunner runner(Options(queue, {}));
  ASSERT_EQ(runner.Start(coordinator), absl::OkStatus());
  EXPECT_TRUE(absl::IsAlreadyExists(runner.Start(coordinator)));
  coordinator.RequestStop();
  EXPECT_EQ(coordinator.Join(), absl::OkStatus());
}

// The queue of a process without a cluster; several threads fill it, and one empties it.
TEST(QueueRunnerTest, FillsARealQueueWhichGivesEverythingOnce) {
  constexpr int64_t kThreads = 3;
  constexpr int64_t kElements = 50;
  const auto node = Node::Create(TaskConfig(), {}).value();
  const auto queue = node->OpenQueue("input", {.capacity = 4, .components = {{DType::kInt64, {}}}}).value();
  QueueRunnerOptions options{
      .close = [&](bool cancel_pending) { return (queue)->Close(cancel_pending, absl::Minutes(1)); }};
  for (int64_t thread = 0; thread < kThreads; ++thread)
    options.enqueue.push_back([&, thread, next = thread * kElements]() mutable -> absl::Status {
      if (next == (thread + 1) * kElements) return absl::OutOfRangeError("used up");
      const int64_t value = next++;
      return (queue)->Enqueue({AsBytes(&value, 1)}, absl::Minutes(1));
    });
  Coordinator coordinator;
  QueueRunner runner(std::move(options));
  ASSERT_EQ(runner.Start(coordinator), absl::OkStatus());
  std::multiset<int64_t> got;
  for (;;) {
    const auto batch = queue->Dequeue(7, /*small_batch=*/true, absl::Minutes(1));
    if (!batch.ok()) {
      EXPECT_TRUE(absl::IsOutOfRange(batch.status())) << batch.status();
      break;
    }
    std::vector<int64_t> values(batch->elements);
    std::memcpy(values.data(), batch->bytes.data(), batch->bytes.size());
    got.insert(values.begin(), values.end());
  }
  EXPECT_EQ(got.size(), static_cast<size_t>(kThreads * kElements));
  EXPECT_EQ(std::set<int64_t>(got.begin(), got.end()).size(), got.size());
  coordinator.RequestStop();
  EXPECT_EQ(coordinator.Join(), absl::OkStatus());
}

// The runner waits for room in a real queue that nobody empties.
TEST(QueueRunnerTest, AStopEndsAWaitAtARealQueue) {
  const auto node = Node::Create(TaskConfig(), {}).value();
  const auto queue = node->OpenQueue("input", {.capacity = 1, .components = {{DType::kInt64, {}}}}).value();
  std::atomic<int> done = 0;
  const int64_t value = 1;
  Coordinator coordinator;
  QueueRunner runner({.enqueue = {[&] {
                        const absl::Status status = queue->Enqueue({AsBytes(&value, 1)});
                        if (status.ok()) ++done;
                        return status;
                      }},
                      .close = [&](bool cancel_pending) { return (queue)->Close(cancel_pending); }});
  ASSERT_EQ(runner.Start(coordinator), absl::OkStatus());
  while (queue->Size()->size < 1) {
  }
  coordinator.RequestStop();
  EXPECT_EQ(coordinator.Join(), absl::OkStatus());
  EXPECT_EQ(done, 1);
}

TEST(NodeQueueTest, RefusesWhatNobodyCanKeep) {
  const auto node = Node::Create(TaskConfig(), {}).value();
  EXPECT_TRUE(absl::IsInvalidArgument(node->OpenQueue("q", {.components = {{}}}).status())) << "no capacity";
  EXPECT_TRUE(absl::IsInvalidArgument(node->OpenQueue("q", {.capacity = 1}).status())) << "no components";
  const absl::Status elsewhere = node->OpenQueue("q", {.capacity = 1, .components = {{}}, .ps = 1}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(elsewhere));
  EXPECT_THAT(std::string(elsewhere.message()), HasSubstr("0 to 0"));
}

TEST(NodeQueueTest, AllWhoMeanANameMeanOnePs) {
  EXPECT_EQ(PsOfQueue("input", 1), 0);
  // FNV-1a 64 of "foobar" is 0x85944171f73967e8, as its authors publish it.
  EXPECT_EQ(PsOfQueue("foobar", 1000), static_cast<int>(0x85944171f73967e8 % 1000));
}

}  // namespace
}  // namespace muster::queue_runner_test
