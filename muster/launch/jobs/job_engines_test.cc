#include "muster/launch/jobs/job_engines.h"

#include <gmock/gmock.h>

namespace muster::job_engines_test {
namespace {

TEST(JobEnginesTest, EachHasATitleForUsers) {
  std::vector<std::string> titles;
  for (const std::string& name : JobEngineNames()) titles.push_back(JobEngineTitle(name));
  EXPECT_THAT(titles, testing::ElementsAre("Slurm", "Ray", "Spark", "Kubernetes"));
  EXPECT_EQ(JobEngineTitle("pbs"), "pbs");
}

}  // namespace
}  // namespace muster::job_engines_test
