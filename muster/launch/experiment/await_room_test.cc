#include "muster/launch/experiment/await_room.h"

#include <gmock/gmock.h>

#include <string>

namespace muster::await_room_test {
namespace {

using ::testing::HasSubstr;

class AwaitRoomTest : public ::testing::Test {
 protected:
  // There is room from the try `enough` on.
  absl::Status Await(int enough, const absl::Status& then = absl::OkStatus()) {
    testing::internal::CaptureStderr();
    const absl::Status done = AwaitRoom(
        [&] { return ++tries_ < enough ? absl::ResourceExhaustedError("no room for /shared/index.db") : then; },
        [this](absl::Duration pause) { paused_ += pause; }, [this] { return tries_ == gives_up_at_; });
    said_ = testing::internal::GetCapturedStderr();
    return done;
  }

  int tries_ = 0, gives_up_at_ = 0;
  absl::Duration paused_;
  std::string said_;
};

TEST_F(AwaitRoomTest, WhereThereIsRoomNothingIsSaid) {
  EXPECT_TRUE(Await(1).ok());
  EXPECT_EQ(paused_, absl::ZeroDuration());
  EXPECT_EQ(said_, "");
}

TEST_F(AwaitRoomTest, ItWaitsForRoomAndSaysSoOnce) {
  EXPECT_TRUE(Await(4).ok());
  EXPECT_EQ(paused_, 3 * kRoomPause);
  EXPECT_EQ(said_, "muster: no room for /shared/index.db: the experiment waits until there is some\n");
}

TEST_F(AwaitRoomTest, AnotherErrorEndsIt) {
  EXPECT_TRUE(absl::IsDataLoss(Await(2, absl::DataLossError("damaged"))));
  EXPECT_EQ(tries_, 2);
}

TEST_F(AwaitRoomTest, WhoIsAskedToEndDoesNotWait) {
  gives_up_at_ = 2;
  EXPECT_TRUE(absl::IsResourceExhausted(Await(100)));
  EXPECT_EQ(tries_, 2);
  EXPECT_THAT(said_, HasSubstr("no room"));
}

TEST_F(AwaitRoomTest, ATimeThatHasPassedEndsIt) {
  const auto work = [this] { return ++tries_ == 2 ? absl::OkStatus() : absl::ResourceExhaustedError("no room"); };
  EXPECT_TRUE(absl::IsResourceExhausted(AwaitRoom(work, absl::InfinitePast())));
  EXPECT_EQ(tries_, 1);
}

}  // namespace
}  // namespace muster::await_room_test
