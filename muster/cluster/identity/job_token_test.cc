#include "muster/cluster/identity/job_token.h"

#include <gmock/gmock.h>

#include "muster/base/wrong_configuration.h"

namespace muster::job_token_test {
namespace {

TEST(JobToken, AShortOneIsRefusedWithTheWayOut) {
  const absl::Status status = CheckJobToken("a secret");
  EXPECT_TRUE(IsWrongConfiguration(status));
  EXPECT_THAT(std::string(status.message()), ::testing::AllOf(::testing::HasSubstr("MUSTER_JOB_TOKEN has 8 characters"),
                                                              ::testing::HasSubstr("openssl rand -hex 32")));
  EXPECT_THAT(std::string(status.message()), ::testing::Not(::testing::HasSubstr("a secret")));
}

TEST(JobToken, NoneAndALongOneAreFine) {
  EXPECT_EQ(CheckJobToken(""), absl::OkStatus());
  EXPECT_EQ(CheckJobToken(std::string(kLeastJobToken, 'x')), absl::OkStatus());
}

}  // namespace
}  // namespace muster::job_token_test
