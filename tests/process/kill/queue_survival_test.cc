// A queue on a real ps whose producer, consumer or ps is killed with SIGKILL: what was enqueued is given out once,
// except for what the dead process itself was working on.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "muster/store/queues/queue_handle.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/killed_processes.h"

namespace muster::queue_survival_test {
namespace {

constexpr int64_t kElements = 3000;
constexpr int64_t kBeforeTheDeath = 300;
constexpr absl::Duration kLimit = absl::Minutes(2);  // only turns a hanging test into a red one

struct Shared {
  std::atomic<int64_t> enqueued = 0;                // elements that the producer knows are enqueued
  std::atomic<int64_t> dequeued = 0;                // elements that consumers have noted
  std::array<std::atomic<int>, kElements> times{};  // how often each was noted
};

class QueueSurvivalTest : public ::testing::Test {
 protected:
  std::unique_ptr<QueueHandle> Open(const std::string& task) {
    return std::make_unique<QueueHandle>(JobToken(), cluster_.ps_address(0),
                                         QueueSpec{"input", 16, {{DType::kInt64, {}}}},
                                         QueueClientOptions{.task = task});
  }
  // A process that enqueues everything from where the previous one is known to have stopped, and closes the queue.
  pid_t Producer() {
    return Fork([this] {
      const auto queue = Open("worker:0");
      for (int64_t value = shared_->enqueued; value < kElements; ++value) {
        if (!queue->Enqueue({AsBytes(&value, 1)}, kLimit).ok()) _exit(1);
        shared_->enqueued = value + 1;
      }
      if (!queue->Close(false, kLimit).ok()) _exit(1);
    });
  }
  // A process that dequeues until the queue has ended.
  pid_t Consumer() {
    return Fork([this] {
      const auto queue = Open("worker:1");
      for (;;) {
        const auto batch = queue->Dequeue(1, false, kLimit);
        if (absl::IsOutOfRange(batch.status())) return;
        if (!batch.ok()) _exit(1);
        int64_t value = 0;
        std::memcpy(&value, batch->bytes.data(), sizeof value);
        ++shared_->times[static_cast<size_t>(value)];
        ++shared_->dequeued;
      }
    });
  }
  static void AwaitAtLeast(const std::atomic<int64_t>& count, int64_t least) {
    const absl::Time give_up = absl::Now() + kLimit;
    while (count < least && absl::Now() < give_up) sched_yield();
    ASSERT_GE(count, least);
  }
  static void Kill(pid_t pid) {
    kill(pid, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFSIGNALED(status)) << "it had ended before it was killed: let it do more";
  }
  static void ExpectCleanEnd(pid_t pid) {
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  int64_t GivenOut(int times) const {
    int64_t count = 0;
    for (const std::atomic<int>& one : shared_->times) count += one == times ? 1 : 0;
    return count;
  }

  ByHand cluster_{1, 2};
  ServingPs ps_{cluster_, 0};
  SharedWithChildren<Shared> shared_;
};

TEST_F(QueueSurvivalTest, AKilledConsumerTakesAlongWhatItWasGivenAndNothingElse) {
  const pid_t producer = Producer();
  const pid_t killed = Consumer();
  const pid_t other = Consumer();
  AwaitAtLeast(shared_->dequeued, kBeforeTheDeath);
  Kill(killed);
  ExpectCleanEnd(producer);
  ExpectCleanEnd(other);
  EXPECT_GE(GivenOut(1), kElements - 1);
  EXPECT_EQ(GivenOut(1) + GivenOut(0), kElements) << "nothing twice";
}

TEST_F(QueueSurvivalTest, AKilledProducerLosesAtMostTheKnowledgeOfItsLastElement) {
  const pid_t consumer = Consumer();
  const pid_t killed = Producer();
  AwaitAtLeast(shared_->enqueued, kBeforeTheDeath);
  Kill(killed);
  const auto under_way = static_cast<size_t>(shared_->enqueued);
  const pid_t next = Producer();
  ExpectCleanEnd(next);
  ExpectCleanEnd(consumer);
  for (size_t i = 0; i < kElements; ++i) {
    if (i != under_way) {
      EXPECT_EQ(shared_->times[i], 1) << i;
    }
  }
  EXPECT_GE(shared_->times[under_way], 1);
  EXPECT_LE(shared_->times[under_way], 2) << "the next one can't know whether it was enqueued";
}

TEST_F(QueueSurvivalTest, ACallEndsAtItsDeadlineThoughThePsIsKilled) {
  const auto queue = Open("worker:0");
  ASSERT_EQ(queue->Open(kLimit), absl::OkStatus());
  ps_.Signal(SIGKILL);
  ps_.Reap();
  const auto batch = queue->Dequeue(1, false, absl::Milliseconds(200));
  EXPECT_TRUE(absl::IsDeadlineExceeded(batch.status())) << batch.status();
}

}  // namespace
}  // namespace muster::queue_survival_test
