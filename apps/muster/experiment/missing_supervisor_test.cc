#include "apps/muster/experiment/missing_supervisor.h"

#include <gmock/gmock.h>

#include "muster/base/testing/scratch_folder.h"

namespace muster::missing_supervisor_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr, ::testing::Not;

TEST(MissingSupervisorTest, OnlyALogThatIsThereIsNamed) {
  const ScratchFolder scratch;
  const Home home(scratch.path());
  const ExperimentId id{.number = 1};
  const std::string log = home.supervisor_log(id);
  EXPECT_THAT(MissingSupervisorText(home, id, /*in_job=*/true),
              AllOf(HasSubstr("experiment 1: its job is still being submitted"), Not(HasSubstr(log))));
  EXPECT_THAT(MissingSupervisorText(home, id, /*in_job=*/false),
              AllOf(HasSubstr("its supervisor doesn't start"), Not(HasSubstr(log))));
  scratch.Write("experiments/1/supervisor.log", "why");
  EXPECT_THAT(MissingSupervisorText(home, id, /*in_job=*/true), HasSubstr(log + " may say why"));
}

}  // namespace
}  // namespace muster::missing_supervisor_test
