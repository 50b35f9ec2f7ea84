#include "muster/algo/algorithms/group_wait.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "muster/base/log.h"

namespace muster::group_wait_test {
namespace {

TEST(GroupWaitTest, IsOnTheStatusPageAtOnceAndInTheLogWhenItLasts) {
  const MonotonicTraceClock clock;
  Track track("training", clock);
  GroupWait wait(&track, absl::Minutes(30));
  ::testing::internal::CaptureStderr();
  SetUpLog("");
  const auto wait_for = [&](int seconds, const absl::Status& ended = absl::OkStatus()) {
    for (int i = 0; i < seconds; ++i) wait("worker:1", absl::Milliseconds(100) + absl::Seconds(i), absl::OkStatus());
    EXPECT_EQ(track.waiting_for(), "worker:1");
    wait("", absl::ZeroDuration(), ended);
    EXPECT_EQ(track.waiting_for(), "");
  };
  wait_for(9);
  wait_for(45);
  wait_for(12);
  wait_for(13, absl::UnavailableError("it has died"));
  std::vector<std::string> said;
  for (const absl::string_view line : absl::StrSplit(::testing::internal::GetCapturedStderr(), '\n'))
    if (absl::StrContains(line, "worker:1")) said.emplace_back(line);
  ASSERT_EQ(said.size(), 7);
  EXPECT_THAT(said[0], ::testing::HasSubstr("worker:1 hasn't come to the step of the others for 10s"));
  EXPECT_THAT(said[0], ::testing::HasSubstr("up to 30m"));
  EXPECT_THAT(said[1], ::testing::HasSubstr("for 20s"));
  EXPECT_THAT(said[2], ::testing::HasSubstr("for 40s"));
  EXPECT_THAT(said[3], ::testing::HasSubstr("is over"));
  EXPECT_THAT(said[4], ::testing::HasSubstr("for 10s"));
  EXPECT_THAT(said[5], ::testing::HasSubstr("is over"));
  EXPECT_THAT(said[6], ::testing::HasSubstr("for 10s")) << "a worker that has died hasn't come either";
}

TEST(GroupWaitTest, NobodyNeedsToWatch) {
  GroupWait wait(nullptr, absl::Minutes(30));
  wait("worker:1", absl::Seconds(1), absl::OkStatus());
  wait("", absl::ZeroDuration(), absl::OkStatus());
}

}  // namespace
}  // namespace muster::group_wait_test
