// What a worker's log says about its connections.
#include "muster/train/watch/link_notice.h"

#include <gmock/gmock.h>

#include <string>

#include "muster/base/log.h"

namespace muster::link_notice_test {
namespace {

using ::testing::HasSubstr;

std::string Said(LinkNotice& notice, size_t ps, const char* link) {
  ::testing::internal::CaptureStderr();
  SetUpLog("");
  notice.Check(ps, link);
  return ::testing::internal::GetCapturedStderr();
}

TEST(LinkNotice, SaysOfEachPsWhatItIsReachedThroughOnceAndWhenThatChanges) {
  LinkNotice notice;
  EXPECT_EQ(Said(notice, 1, ""), "");
  EXPECT_THAT(Said(notice, 1, "shared memory"), HasSubstr("talks with ps:1 through shared memory\n"));
  EXPECT_EQ(Said(notice, 1, "shared memory"), "");
  EXPECT_THAT(Said(notice, 0, "tcp"), HasSubstr("talks with ps:0 over TCP\n"));
  EXPECT_EQ(Said(notice, 1, ""), "") << "it was restarted";
  EXPECT_EQ(Said(notice, 1, "shared memory"), "");
  EXPECT_THAT(Said(notice, 1, "tcp"), HasSubstr("talks with ps:1 over TCP\n"));
}

TEST(LinkNotice, SaysNothingWhereNothingIsSent) {
  LinkNotice notice;
  EXPECT_EQ(Said(notice, 0, "direct"), "");
  EXPECT_EQ(Said(notice, 0, "loopback"), "");
}

}  // namespace
}  // namespace muster::link_notice_test
