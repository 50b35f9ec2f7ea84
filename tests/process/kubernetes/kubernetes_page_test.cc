// docs/kubernetes.md is followed word by word, in pods of a stand-in whose nodes are small.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "muster/base/testing/built_at.h"
#include "tests/process/kubernetes/kubernetes_experiment.h"
#include "tests/process/testing/page_blocks.h"

namespace muster::kubernetes_page_test {
namespace {

using ::testing::AllOf, ::testing::ContainsRegex, ::testing::HasSubstr, ::testing::SizeIs;

constexpr char kPage[] = "kubernetes.md";
constexpr char kBegin[] = "From nothing to a trained model", kPods[] = "What pods are like";

class KubernetesPage : public KubernetesExperiment {
 protected:
  // The page's files say themselves where they run.
  std::string MoreOfFile() const override { return ""; }
  // Returns the page's only block of a chapter, with the paths of this cluster.
  static std::string Block(const std::string& chapter, const std::string& language) {
    const std::vector<std::string> blocks = BlocksOfPage(kPage, chapter, language);
    EXPECT_THAT(blocks, SizeIs(1)) << chapter;
    if (blocks.empty()) return "";
    return absl::StrReplaceAll(blocks[0], {{"/opt/muster/bin", BinFolder()},
                                           {"/opt/muster/data", SourceFolder() + "/examples/data"},
                                           {"mem: 4GB", "mem: 1GB"},
                                           {"  nodes: 2\n", "  nodes: 2\n  muster: " + BinFolder() + "/muster\n"}});
  }
  // Runs commands as a user types them. They must end with 0. Returns both streams.
  std::string Follow(const std::string& commands) const {
    Process process(
        cluster().OnH0({"env", absl::StrCat("PATH=", BinFolder(), ":/usr/bin:/bin"), "bash", "-ec", commands}),
        Options());
    EXPECT_EQ(process.Wait(), 0) << commands << process.out << process.err;
    return process.out + process.err;
  }
};

TEST_F(KubernetesPage, LeadsFromNothingToATrainedModel) {
  Write("muster.yml", Block(kBegin, "yaml"));
  const std::string said = Follow(Block(kBegin, "bash"));
  EXPECT_THAT(said, AllOf(HasSubstr("Kubernetes says: context standin, namespace default would take it"),
                          ContainsRegex("experiment 1 is job muster-1-[0-9a-f]+ of Kubernetes"),
                          ContainsRegex("1.master +\\| .*Test accuracy")));
  EXPECT_EQ(StateOf("1"), "FINISHED");
}

TEST_F(KubernetesPage, ItsPodsOfARestrictedNamespaceAreWhatTheClusterWouldTake) {
  const std::string beginning = "kubernetes:\n";
  Write("muster.yml", absl::StrReplaceAll(Block(kBegin, "yaml"), {{"\n" + beginning, "\n" + Block(kPods, "yaml")}}));
  EXPECT_THAT(Follow("muster train --dry-run"),
              AllOf(HasSubstr("runAsNonRoot: true"), HasSubstr("runAsUser: 1000"), HasSubstr("would take it")));
}

TEST(KubernetesPageText, HasNoBlockThatIsNotRunHere) { EXPECT_EQ(CountOfBlocks(kPage), 3U); }

}  // namespace
}  // namespace muster::kubernetes_page_test
