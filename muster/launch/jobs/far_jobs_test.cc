#include "muster/launch/jobs/far_jobs.h"

#include <gmock/gmock.h>

#include <memory>
#include <string>

#include "muster/launch/testing/registry_fixture.h"

namespace muster::far_jobs_test {
namespace {

class FarJobsTest : public RegistryFixture {};

TEST_F(FarJobsTest, ARunThatHasEndedSaysWhetherItsOutputIsStillFetched) {
  const std::unique_ptr<Registry> registry = Open();
  const ExperimentId id{.number = Create(*registry, Single())};
  ASSERT_TRUE(MarkFar(home_, id).ok());
  EXPECT_EQ(FetchingText(home_, Get(*registry, id)), "") << "it hasn't ended";
  Bring(*registry, id, RunState::kFinished);
  EXPECT_EQ(FetchingText(home_, Get(*registry, id)), "its output is still being fetched from its job");
  UnmarkFar(home_, id);
  EXPECT_EQ(FetchingText(home_, Get(*registry, id)), "");
}

TEST_F(FarJobsTest, ARunWhoseSubmissionWasNotAnsweredSaysThatItsJobMayBeThere) {
  const std::unique_ptr<Registry> registry = Open();
  const ExperimentId id{.number = Create(*registry, Single())};
  ASSERT_TRUE(MarkFar(home_, id, {.engine = "kubernetes", .id = "muster-9"}).ok());
  EXPECT_EQ(FetchingText(home_, Get(*registry, id)), "") << "it is being submitted";
  ASSERT_TRUE(registry->EndLost(id, {.reason = "no answer", .exit_code = 1}).ok());
  EXPECT_TRUE(MayHaveUnwrittenJob(home_, Get(*registry, id)));
  EXPECT_EQ(FetchingText(home_, Get(*registry, id)),
            "whether its job muster-9 was made isn't known; it is looked for, and ended if it is there");
  // A job that was written down has output.
  ASSERT_TRUE(PosixFileSystem().CreateDirectory(home_.folder(id)).ok());
  ASSERT_TRUE(WriteJobFile(home_.job(id), {.engine = "kubernetes", .id = "muster-9"}).ok());
  EXPECT_FALSE(MayHaveUnwrittenJob(home_, Get(*registry, id)));
  EXPECT_EQ(FetchingText(home_, Get(*registry, id)), "its output is still being fetched from its job");
}

}  // namespace
}  // namespace muster::far_jobs_test
