#include "muster/launch/task/node_layout.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/base/testing/scratch_folder.h"

namespace muster::node_layout_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr;

std::vector<std::string> Shown(const NodeLayoutRequest& request) {
  const auto placed = PlaceByNode(request).value();
  std::vector<std::string> shown;
  for (const PlacedTask& task : placed)
    shown.push_back(absl::StrCat(task.task.ToString(), " ", task.node, " ", task.device));
  return shown;
}

TEST(NodeLayoutTest, TheFirstNodeHasTheMasterAPsAndTwoWorkersEachWithADevice) {
  EXPECT_THAT(Shown({{"h1"}, 4}), ElementsAre("ps:0 h1 3", "master:0 h1 0", "worker:0 h1 1", "worker:1 h1 2"));
}

TEST(NodeLayoutTest, EveryFurtherNodeHasAPsAndAWorkerADevice) {
  EXPECT_THAT(Shown({{"h1", "h2", "h3"}, 2}),
              ElementsAre("ps:0 h1 1", "ps:1 h2 0", "ps:2 h3 0", "master:0 h1 0", "worker:0 h1 1", "worker:1 h1 0",
                          "worker:2 h2 0", "worker:3 h2 1", "worker:4 h3 0", "worker:5 h3 1"));
}

TEST(NodeLayoutTest, OneDeviceIsSharedByAllOfTheFirstNode) {
  EXPECT_THAT(Shown({{"h1"}, 1}), ElementsAre("ps:0 h1 0", "master:0 h1 0", "worker:0 h1 0", "worker:1 h1 0"));
}

TEST(NodeLayoutTest, RefusesWhatIsNoLayout) {
  EXPECT_THAT(PlaceByNode({{}, 4}).status().message(), HasSubstr("at least one name"));
  EXPECT_THAT(PlaceByNode({{"h1", ""}, 4}).status().message(), HasSubstr("a name is empty"));
  EXPECT_THAT(PlaceByNode({{"h1", "h1"}, 4}).status().message(), HasSubstr("'h1' is there twice"));
  EXPECT_THAT(PlaceByNode({{"h1"}, 0}).status().message(), HasSubstr("--devices 0: accepted are 1 to 64"));
  EXPECT_THAT(PlaceByNode({{"h1"}, 65}).status().message(), HasSubstr("--devices 65"));
}

TEST(NodeLayoutTest, ADeviceIsOneOfThoseThatTheLauncherMaySee) {
  EXPECT_EQ(VisibleDevice(2, ""), "2");
  EXPECT_EQ(VisibleDevice(1, "3,GPU-5ebe9f43"), "GPU-5ebe9f43");
  EXPECT_EQ(VisibleDevice(2, "3,1"), "3");
}

TEST(NodeLayoutTest, GpusAreWhatTheDriverLists) {
  const ScratchFolder scratch;
  EXPECT_EQ(CountGpus(scratch.path()), 0);
  ASSERT_TRUE(PosixFileSystem().CreateDirectory(scratch / "0000:17:00.0").ok());
  ASSERT_TRUE(PosixFileSystem().CreateDirectory(scratch / "0000:65:00.0").ok());
  EXPECT_EQ(CountGpus(scratch.path()), 2);
  EXPECT_EQ(CountGpus(scratch / "none"), 0);
}

}  // namespace
}  // namespace muster::node_layout_test
