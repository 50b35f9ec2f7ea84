// docs/slurm.md is followed word by word, on a real Slurm.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "muster/base/testing/built_at.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/page_blocks.h"
#include "tests/process/testing/slurm_cluster.h"

namespace muster::slurm_page_test {
namespace {

using ::testing::AllOf, ::testing::ContainsRegex, ::testing::HasSubstr;

class SlurmPage : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = SlurmCluster::WhyNot(); !why.empty()) GTEST_SKIP() << why;
    hosts_ = std::make_unique<SimulatedHosts>(3);
    slurm_ = std::make_unique<SlurmCluster>(*hosts_, std::vector<int>{4, 4, 4});
    folder_ = hosts_->shared() + "/project";
    std::filesystem::create_directory(folder_);
  }
  void TearDown() override {
    if (slurm_ == nullptr) return;
    for (const std::string& host : hosts_->names()) slurm_->AwaitNothingElseOn(host);
  }

  // Runs what a block says, in this folder of h0, and returns what it has printed.
  std::string Run(const std::string& block, const std::string& folder) const {
    const std::string path = absl::StrCat("PATH=", BinFolder(), ":/usr/bin:/bin");
    const std::string home = absl::StrCat("MUSTER_HOME=", hosts_->shared(), "/home");
    Process commands(hosts_->On("h0", {"env", slurm_->variable(), path, home, "bash", "-ec", block}),
                     {.directory = folder});
    EXPECT_EQ(commands.Wait(), 0) << block << commands.out << commands.err;
    return commands.out + commands.err;
  }

  std::unique_ptr<SimulatedHosts> hosts_;
  std::unique_ptr<SlurmCluster> slurm_;
  std::string folder_;
};

TEST_F(SlurmPage, LeadsFromNothingToATrainedModel) {
  constexpr char kChapter[] = "From nothing to a trained model";
  const std::vector<std::string> files = BlocksOfPage("slurm.md", kChapter, "yaml");
  ASSERT_EQ(files.size(), 1);
  std::ofstream(folder_ + "/muster.yml") << absl::StrReplaceAll(
      files[0], {{"/opt/muster/bin", BinFolder()}, {"/opt/muster/data", SourceFolder() + "/examples/data"}});
  std::string said;
  for (const std::string& block : BlocksOfPage("slurm.md", kChapter, "bash")) said += Run(block, folder_);
  EXPECT_THAT(said, AllOf(HasSubstr("#SBATCH --nodes=2\n"), ContainsRegex("experiment 1 is job [0-9]+ of Slurm"),
                          ContainsRegex("1.master +\\| .*Test accuracy"), ContainsRegex("1.ps.1 +FINISHED +[^ ]+ +h1 "),
                          HasSubstr("experiment 2 has 2 jobs of Slurm"), ContainsRegex("2.2 +FINISHED")));
}

TEST_F(SlurmPage, ItsInteractiveCommandsTrain) {
  for (const char* chapter : {"Interactively: inside an allocation", "srun without a launcher"}) {
    const std::vector<std::string> blocks = BlocksOfPage("slurm.md", chapter, "bash");
    ASSERT_FALSE(blocks.empty()) << chapter;
    EXPECT_THAT(Run(blocks.front(), SourceFolder()), HasSubstr("Test accuracy")) << chapter;
  }
}

}  // namespace
}  // namespace muster::slurm_page_test
