#include "muster/launch/output/output_queue.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <string>

namespace muster::output_queue_test {
namespace {

class OutputQueueTest : public testing::Test {
 protected:
  void SetUp() override {
    signal(SIGPIPE, SIG_IGN);
    ASSERT_EQ(pipe2(ends_, O_CLOEXEC), 0);
  }
  void TearDown() override {
    close(ends_[0]);
    close(ends_[1]);
  }
  // Returns what one read gets; the pipe must not be empty.
  std::string Read() {
    std::string got(1 << 16, '\0');
    got.resize(read(ends_[0], got.data(), got.size()));
    return got;
  }

  SimulatedClock clock_;
  FdLoop loop_{clock_};
  int ends_[2];
};

TEST_F(OutputQueueTest, WritesInOrder) {
  OutputQueue queue(loop_, ends_[1]);
  queue.Put("one\n");
  queue.Put("two\n");
  EXPECT_EQ(queue.bytes(), 8);
  loop_.RunOnce(absl::InfiniteFuture());
  EXPECT_EQ(queue.bytes(), 0);
  EXPECT_EQ(Read(), "one\ntwo\n");
}

TEST_F(OutputQueueTest, NeverBlocksOnAFullPipe) {
  OutputQueue queue(loop_, ends_[1]);
  std::string text(300000, 'x');
  for (size_t i = 0; i < text.size(); ++i) text[i] = 'a' + i % 23;
  for (size_t at = 0; at < text.size(); at += 1000) queue.Put(std::string_view(text).substr(at, 1000));
  // Puts in more than a pipe holds. The rounds end though nobody reads: those that find the pipe full return because
  // the deadline has passed.
  for (int i = 0; i < 200; ++i) loop_.RunOnce(clock_.Now());
  EXPECT_GT(queue.bytes(), 0);
  std::string got;
  while (got.size() < text.size()) {
    if (queue.bytes() > 0) loop_.RunOnce(clock_.Now());
    got += Read();
  }
  EXPECT_EQ(got, text);
  EXPECT_EQ(queue.bytes(), 0);
}

TEST_F(OutputQueueTest, ThrowsAwayWhatNobodyCanRead) {
  OutputQueue queue(loop_, ends_[1]);
  queue.Put("one\n");
  close(ends_[0]);
  loop_.RunOnce(absl::InfiniteFuture());
  EXPECT_EQ(queue.bytes(), 0);
  queue.Put("two\n");
  EXPECT_EQ(queue.bytes(), 0);
}

}  // namespace
}  // namespace muster::output_queue_test
