#include "muster/base/os/control_groups.h"

#include <gmock/gmock.h>

#include "muster/base/testing/scratch_folder.h"

namespace muster::control_groups_test {
namespace {

using ::testing::ElementsAre, ::testing::IsEmpty, ::testing::SizeIs;

class ControlGroupsTest : public ::testing::Test {
 protected:
  std::vector<ControlGroupFolders> With(std::string_view controller) const {
    return ControlGroupsWith(controller, root_ / "proc", "/mount");
  }

  const ScratchFolder root_;
};

TEST_F(ControlGroupsTest, OfBothVersionsEachWithThoseAbove) {
  root_.Write("proc/self/cgroup", "4:cpu,cpuacct:/job\n3:memory:/\n2:freezer:/cold\nnonsense\n0::/unit/inner\n");
  const auto cpu = With("cpu");
  ASSERT_THAT(cpu, SizeIs(2));
  EXPECT_TRUE(cpu[0].is_first_version);
  EXPECT_THAT(cpu[0].folders, ElementsAre("/mount/cpu,cpuacct", "/mount/cpu,cpuacct/job"));
  EXPECT_FALSE(cpu[1].is_first_version);
  EXPECT_THAT(cpu[1].folders, ElementsAre("/mount", "/mount/unit", "/mount/unit/inner"));
  const auto memory = With("memory");
  ASSERT_THAT(memory, SizeIs(2));
  EXPECT_THAT(memory[0].folders, ElementsAre("/mount/memory"));
}

TEST_F(ControlGroupsTest, WithoutAListThereAreNone) { EXPECT_THAT(With("cpu"), IsEmpty()); }

}  // namespace
}  // namespace muster::control_groups_test
