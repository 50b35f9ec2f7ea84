#include "muster/launch/registry/kept_variables.h"

#include <gmock/gmock.h>

namespace muster::kept_variables_test {
namespace {

using ::testing::ElementsAre, ::testing::UnorderedElementsAre;

TEST(KeptVariables, AreTheHarmlessOnes) {
  for (const char* name : {"PATH", "HOME", "LANG", "LC_ALL", "VIRTUAL_ENV", "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS",
                           "LD_LIBRARY_PATH", "PYTHONPATH"})
    EXPECT_TRUE(IsKeptVariable(name)) << name;
  for (const char* name :
       {"AWS_SECRET_ACCESS_KEY", "MUSTER_JOB_TOKEN", "WANDB_API_KEY", "PGPASSWORD", "HTTPS_PROXY", "PIP_INDEX_URL",
        "DATABASE_URL", "CUDA_API_KEY", "NCCL_auth_token", "PATHS", "", "MUSTER_HOME"})
    EXPECT_FALSE(IsKeptVariable(name)) << name;
  EXPECT_THAT(KeptVariables({"A=PATH=x", "PATH=/bin", "KEY=1"}), ElementsAre("PATH=/bin"));
}

TEST(KeptVariables, WinOverThoseOfToday) {
  EXPECT_THAT(WithKeptVariables({"PATH=/new", "KEY=1"}, {"PATH=/old", "LANG=C"}),
              UnorderedElementsAre("PATH=/old", "KEY=1", "LANG=C"));
}

}  // namespace
}  // namespace muster::kept_variables_test
