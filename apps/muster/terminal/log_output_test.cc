#include "apps/muster/terminal/log_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace muster::log_output_test {
namespace {

// Standard output is a pipe while the test runs.
class LogOutputTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::fflush(stdout);
    saved_ = dup(STDOUT_FILENO);
    ASSERT_EQ(pipe2(out_, O_CLOEXEC), 0);
    ASSERT_EQ(pipe2(stop_, O_CLOEXEC), 0);
    dup2(out_[1], STDOUT_FILENO);
    close(out_[1]);
  }
  void TearDown() override {
    Restore();
    close(out_[0]);
    close(stop_[0]);
    close(stop_[1]);
  }
  void Restore() {
    if (saved_ < 0) return;
    dup2(saved_, STDOUT_FILENO);
    close(saved_);
    saved_ = -1;
  }
  // Standard output has its end first, so that this comes to one.
  std::string Read() {
    Restore();
    std::string all;
    char some[4096];
    for (ssize_t n = 0; (n = read(out_[0], some, sizeof some)) > 0;) all.append(some, static_cast<size_t>(n));
    return all;
  }

  int saved_ = -1, out_[2], stop_[2];
};

TEST_F(LogOutputTest, LinesComeWhenTheyAreFlushed) {
  LogOutput output(-1);
  output.Put("one");
  output.Put("");
  output.Put("two");
  output.Flush();
  EXPECT_FALSE(output.done());
  EXPECT_EQ(Read(), "one\n\ntwo\n");
}

// The pipe is full and nobody reads it: without the wish this would wait for ever.
TEST_F(LogOutputTest, AWishToStopIsHeardWhileNobodyReads) {
  LogOutput output(stop_[0]);
  ASSERT_EQ(write(stop_[1], "x", 1), 1);
  for (int i = 0; i < 100; ++i) output.Put(std::string(10'000, 'x'));
  output.Flush();
  EXPECT_TRUE(output.done());
  EXPECT_EQ(output.status(), absl::OkStatus());
}

TEST_F(LogOutputTest, AReaderWhoHasGoneEndsItInSilence) {
  close(out_[0]);
  LogOutput output(-1);
  output.Put("one");
  output.Flush();
  EXPECT_TRUE(output.done());
  EXPECT_EQ(output.status(), absl::OkStatus());
  out_[0] = dup(saved_);
}

TEST_F(LogOutputTest, AFullDiskIsAnError) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  dup2(full, STDOUT_FILENO);
  close(full);
  LogOutput output(-1);
  output.Put("one");
  output.Flush();
  EXPECT_TRUE(output.done());
  EXPECT_EQ(output.status().code(), absl::StatusCode::kResourceExhausted) << output.status();
}

}  // namespace
}  // namespace muster::log_output_test
