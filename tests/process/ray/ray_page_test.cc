// docs/ray.md is followed word by word, on a real Ray.
#include <gmock/gmock.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "muster/base/testing/built_at.h"
#include "tests/process/ray/ray_experiment.h"
#include "tests/process/testing/page_blocks.h"

namespace muster::ray_page_test {
namespace {

using ::testing::AllOf, ::testing::ContainsRegex, ::testing::HasSubstr;

constexpr char kBegin[] = "From nothing to a trained model";

TEST(RayPageText, HasNoBlockThatIsNotRunHere) {
  const std::vector<std::string> bash = BlocksOfPage("ray.md", kBegin, "bash");
  ASSERT_EQ(bash.size(), 3);
  // The cluster of these tests stands for it.
  EXPECT_EQ(bash[0], "pip install 'ray[default]'\nray start --head\n");
  EXPECT_EQ(CountOfBlocks("ray.md"), bash.size() + BlocksOfPage("ray.md", kBegin, "yaml").size());
}

// Named so that it isn't the last one, which ends the cluster.
TEST_F(RayExperiment, ItsPageLeadsFromNothingToATrainedModel) {
  const std::vector<std::string> yaml = BlocksOfPage("ray.md", kBegin, "yaml");
  const std::vector<std::string> bash = BlocksOfPage("ray.md", kBegin, "bash");
  ASSERT_EQ(yaml.size(), 1);
  ASSERT_EQ(bash.size(), 3);
  ASSERT_TRUE(absl::StrContains(yaml[0], "ray: {nodes: 1, address: \"http://127.0.0.1:8265\"}\n"));
  // As it is on the page, without what this suite adds to its files.
  std::ofstream(Options().directory + "/muster.yml")
      << absl::StrReplaceAll(yaml[0], {{"http://127.0.0.1:8265", RayCluster::address()},
                                       {"ray: {nodes: 1, ", absl::StrCat("ray: {nodes: 1, python: ", python_, ", ")},
                                       {"/opt/muster/bin", BinFolder()},
                                       {"/opt/muster/data", SourceFolder() + "/examples/data"}});
  std::string said;
  for (const std::string& block : {bash[1], bash[2]}) {
    Process commands(
        hosts().On("h0", {"env", absl::StrCat("PATH=", BinFolder(), ":/usr/bin:/bin"), "bash", "-ec", block}),
        Options());
    EXPECT_EQ(commands.Wait(), 0) << block << commands.out << commands.err;
    said += commands.out + commands.err;
  }
  EXPECT_THAT(said, AllOf(HasSubstr("#RAY {"), ContainsRegex("experiment 1 is job muster-1-[0-9a-f]+ of Ray"),
                          ContainsRegex("1.master +\\| .*Test accuracy"), ContainsRegex("1.ps.1 +FINISHED ")));
}

}  // namespace
}  // namespace muster::ray_page_test
