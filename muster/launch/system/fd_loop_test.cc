#include "muster/launch/system/fd_loop.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "muster/base/testing/no_free_descriptors.h"
#include "muster/base/testing/scratch_folder.h"

namespace muster::fd_loop_test {
namespace {

class Pipe {
 public:
  Pipe() { EXPECT_EQ(pipe2(ends_, O_CLOEXEC | O_NONBLOCK), 0); }
  ~Pipe() {
    close(ends_[0]);
    Close();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int reading() const { return ends_[0]; }
  void Write() const { EXPECT_EQ(write(ends_[1], "x", 1), 1); }
  void Read() const {
    char byte;
    EXPECT_EQ(read(ends_[0], &byte, 1), 1);
  }
  void Close() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  int ends_[2] = {-1, -1};
};

class FdLoopTest : public ::testing::Test {
 protected:
  FdLoop loop_{RealClock()};
};

TEST_F(FdLoopTest, CallsForWhatIsReadyInTheOrderOfTheNumbersUntilItIsForgotten) {
  std::vector<std::unique_ptr<Pipe>> pipes;
  std::vector<int> called;
  for (int i = 0; i < 100; ++i) {
    pipes.push_back(std::make_unique<Pipe>());
    const int fd = pipes.back()->reading();
    loop_.Watch(fd, POLLIN, [&called, fd](short) { called.push_back(fd); });
  }
  pipes[70]->Write();
  pipes[3]->Write();
  loop_.RunOnce(absl::InfiniteFuture());
  EXPECT_EQ(called, (std::vector{pipes[3]->reading(), pipes[70]->reading()}));
  called.clear();
  loop_.Forget(pipes[3]->reading());
  loop_.RunOnce(absl::InfiniteFuture());
  EXPECT_EQ(called, std::vector{pipes[70]->reading()});
  EXPECT_EQ(loop_.rounds(), 2);
}

TEST_F(FdLoopTest, AnIgnoredDescriptorIsIgnoredEvenWhenItEnds) {
  Pipe pipe;
  int calls = 0;
  loop_.Watch(pipe.reading(), POLLIN, [&calls](short) { ++calls; });
  loop_.SetEvents(pipe.reading(), 0);
  pipe.Write();
  pipe.Close();
  loop_.RunOnce(absl::InfinitePast());
  EXPECT_EQ(calls, 0);
  loop_.SetEvents(pipe.reading(), POLLIN);
  loop_.RunOnce(absl::InfiniteFuture());
  EXPECT_EQ(calls, 1);
  loop_.SetEvents(pipe.reading(), 0);
  loop_.Forget(pipe.reading());
  loop_.RunOnce(absl::InfinitePast());
  EXPECT_EQ(calls, 1);
}

TEST_F(FdLoopTest, ACallbackMayForgetOthersAndReplaceItself) {
  const Pipe one, other;
  std::multiset<std::string> called;
  one.Write();
  other.Write();
  loop_.Watch(one.reading(), POLLIN, [&](short) {
    called.insert("one");
    loop_.Forget(other.reading());
    loop_.Watch(one.reading(), POLLIN, [&](short) { called.insert("replaced"); });
  });
  loop_.Watch(other.reading(), POLLIN, [&](short) { called.insert("other"); });
  loop_.RunOnce(absl::InfiniteFuture());
  loop_.RunOnce(absl::InfiniteFuture());
  EXPECT_EQ(called, (std::multiset<std::string>{"one", "replaced"}));
  loop_.Forget(one.reading());
}

TEST_F(FdLoopTest, AFileIsAlwaysReady) {
  const ScratchFolder folder;
  const int fd = open((folder / "file").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  ASSERT_GE(fd, 0);
  short found = 0;
  loop_.Watch(fd, POLLOUT, [&](short events) { found = events; });
  loop_.RunOnce(absl::InfiniteFuture());
  EXPECT_EQ(found, POLLOUT);
  found = 0;
  loop_.SetEvents(fd, 0);
  loop_.RunOnce(absl::InfinitePast());
  EXPECT_EQ(found, 0);
  loop_.Forget(fd);
  close(fd);
}

TEST(FdLoopWithoutADescriptorForItsTable, WatchesAllTheSame) {
  std::unique_ptr<FdLoop> loop;
  {
    const NoFreeDescriptors full;
    loop = std::make_unique<FdLoop>(RealClock());
  }
  const Pipe one, other;
  std::vector<int> called;
  for (const Pipe* pipe : {&one, &other})
    loop->Watch(pipe->reading(), POLLIN, [&called, fd = pipe->reading()](short) { called.push_back(fd); });
  other.Write();
  loop->RunOnce(absl::InfiniteFuture());
  EXPECT_EQ(called, std::vector{other.reading()});
  loop->SetEvents(other.reading(), 0);
  const absl::Time deadline = RealClock().Now() + absl::Microseconds(1500);
  loop->RunOnce(deadline);
  EXPECT_GE(RealClock().Now(), deadline);
  EXPECT_EQ(called.size(), 1);
  one.Write();
  loop->RunOnce(absl::InfiniteFuture());
  EXPECT_EQ(called.back(), one.reading());
}

TEST_F(FdLoopTest, WaitsForTheDeadline) {
  const absl::Time deadline = RealClock().Now() + absl::Microseconds(1500);
  loop_.RunOnce(deadline);
  EXPECT_GE(RealClock().Now(), deadline);
}

}  // namespace
}  // namespace muster::fd_loop_test
