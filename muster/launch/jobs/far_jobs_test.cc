#include "muster/launch/jobs/far_jobs.h"

#include <gmock/gmock.h>

#include <memory>

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

}  // namespace
}  // namespace muster::far_jobs_test
