// docs/slurm.md is followed word by word, on a real Slurm.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "muster/base/files/file_system.h"
#include "muster/base/testing/built_at.h"
#include "muster/launch/hosts/slurm_setting.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/page_blocks.h"
#include "tests/process/testing/slurm_cluster.h"

namespace muster::slurm_page_test {
namespace {

using ::testing::AllOf, ::testing::AnyOf, ::testing::Contains, ::testing::ContainsRegex, ::testing::Gt,
    ::testing::HasSubstr, ::testing::Not, ::testing::SizeIs;

constexpr char kBegin[] = "From nothing to a trained model", kOptions[] = "What sbatch is asked for",
               kTimeOver[] = "When the job's time is over", kEnding[] = "Ending it",
               kInside[] = "Interactively: inside an allocation", kBySrun[] = "srun without a launcher";

struct Chapter {
  const char* title;
  size_t yaml, bash;  // its blocks
};
constexpr Chapter kChapters[] = {{kBegin, 1, 2},  {kOptions, 1, 0}, {kTimeOver, 1, 2},
                                 {kEnding, 0, 1}, {kInside, 0, 1},  {kBySrun, 0, 2}};

class SlurmPage : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = SlurmCluster::WhyNot(); !why.empty()) GTEST_SKIP() << why;
    hosts_ = std::make_unique<SimulatedHosts>(3);
    slurm_ = std::make_unique<SlurmCluster>(*hosts_, std::vector<int>{8, 8, 8});
    folder_ = hosts_->shared() + "/project";
    std::filesystem::create_directory(folder_);
  }
  void TearDown() override {
    if (slurm_ == nullptr) return;
    if (HasFailure()) slurm_->Ask({"scancel", "--user=root"});  // what the page would have ended
    for (const std::string& host : hosts_->names()) slurm_->AwaitNothingElseOn(host);
  }

  // Returns the blocks of a chapter, with the paths of this cluster.
  std::vector<std::string> Blocks(const std::string& title, const std::string& language) const {
    const auto* chapter = std::find_if(std::begin(kChapters), std::end(kChapters),
                                       [&title](const Chapter& each) { return each.title == title; });
    std::vector<std::string> blocks = BlocksOfPage("slurm.md", title, language);
    EXPECT_EQ(blocks.size(), language == "yaml" ? chapter->yaml : chapter->bash) << title;
    for (std::string& block : blocks)
      block = absl::StrReplaceAll(block, {{"/opt/muster/bin", BinFolder()},
                                          {"/opt/muster/data", SourceFolder() + "/examples/data"},
                                          {"/shared/model", hosts_->shared() + "/model"}});
    blocks.resize(3);  // a missing one is empty, and has failed above
    return blocks;
  }
  // Runs commands in a folder of h0, and returns what they have printed.
  std::string Run(const std::string& block, const std::string& folder) const {
    const std::string path = absl::StrCat("PATH=", BinFolder(), ":/usr/bin:/bin");
    const std::string home = absl::StrCat("MUSTER_HOME=", hosts_->shared(), "/home");
    Process commands(hosts_->On("h0", {"env", slurm_->variable(), path, home, "bash", "-ec", block}),
                     {.directory = folder});
    EXPECT_EQ(commands.Wait(), 0) << block << commands.out << commands.err;
    return commands.out + commands.err;
  }
  // Runs a command until it prints this; returns what it printed last.
  std::string Await(const std::string& command, const std::string& text) const {
    std::string said;
    for (const absl::Time give_up = absl::Now() + absl::Minutes(2);
         !absl::StrContains(said, text) && absl::Now() < give_up && !HasFailure();)
      said = Run(command, folder_);
    EXPECT_THAT(said, HasSubstr(text)) << command;
    return said;
  }
  // Writes the experiment's file of the page, with another setting of Slurm where the page gives one.
  void WriteFile(const std::string& slurm = "") const {
    std::string text = Blocks(kBegin, "yaml")[0];
    const size_t begin = text.find("slurm: ");
    ASSERT_NE(begin, std::string::npos);
    if (!slurm.empty()) text.replace(begin, text.find('\n', begin) + 1 - begin, slurm);
    std::ofstream(folder_ + "/muster.yml") << text;
  }

  std::unique_ptr<SimulatedHosts> hosts_;
  std::unique_ptr<SlurmCluster> slurm_;
  std::string folder_;
};

TEST(SlurmPageText, HasNoBlockThatIsNotRunHere) {
  size_t run = 0;
  for (const Chapter& chapter : kChapters) run += chapter.yaml + chapter.bash;
  EXPECT_EQ(CountOfBlocks("slurm.md"), run);
}

TEST_F(SlurmPage, LeadsFromNothingToATrainedModelWhichGoesOnUntilItIsKilled) {
  WriteFile();
  std::string said;
  for (const std::string& block : Blocks(kBegin, "bash")) said += Run(block, folder_);
  EXPECT_THAT(said, AllOf(HasSubstr("#SBATCH --nodes=2\n"), ContainsRegex("experiment 1 is job [0-9]+ of Slurm"),
                          ContainsRegex("1.master +\\| .*Test accuracy"), ContainsRegex("1.ps.1 +FINISHED +[^ ]+ +h1 "),
                          HasSubstr("experiment 2 has 2 jobs of Slurm"), ContainsRegex("2.2 +FINISHED")));

  WriteFile(Blocks(kTimeOver, "yaml")[0]);
  const std::vector<std::string> requeue = Blocks(kTimeOver, "bash");
  Run(requeue[0], folder_);
  Await("muster logs 3", "global_step/sec");
  Run(requeue[1], folder_);
  const std::string log = Await("muster status 3 >&2; muster logs 3", "Restoring parameters from");
  EXPECT_THAT(log, ContainsRegex("Saving checkpoints for [1-9]"));
  EXPECT_THAT(Run("muster status 3 --json", folder_), HasSubstr("\"requeues\":1"));

  EXPECT_THAT(Run(Blocks(kEnding, "bash")[0], folder_), HasSubstr("experiment 3: KILLED"));
}

TEST_F(SlurmPage, TheOptionsThatItShowsReachSbatch) {
  WriteFile(Blocks(kOptions, "yaml")[0]);
  // The cluster has no such partition.
  const std::string said = Run("muster train --dry-run || [ $? = 2 ]", folder_);
  for (const char* option :
       {"partition=gpu", "account=physics", "nodes=4", "time=12:00:00", "exclusive", "reservation=course", "requeue"})
    EXPECT_THAT(said, HasSubstr(absl::StrCat("#SBATCH --", option, "\n")));
  EXPECT_THAT(said, AllOf(Not(HasSubstr("#SBATCH --mem")), Not(HasSubstr("#SBATCH --max")),
                          HasSubstr("Slurm says: sbatch: error: invalid partition specified: gpu")));
}

// Expects that each of these tasks has said its role, "chief:0" being the first, and each ps that all were there: one
// that any task has missed says so.
void ExpectTrainedTogether(const std::string& said, const std::vector<std::string>& tasks, const std::string& cluster) {
  for (size_t i = 0; i < tasks.size(); ++i) {
    EXPECT_THAT(said,
                ContainsRegex(absl::StrCat("digits: role from Slurm: task ", i, " of ", tasks.size(),
                                           " of step [0-9]+\\.0 is ", tasks[i], " at [^ \n]+ \\(", cluster, "\\)\n")));
    if (absl::StartsWith(tasks[i], "ps:")) {
      EXPECT_THAT(said, HasSubstr(absl::StrCat("[", tasks[i], "] training has ended: every task is done\n")));
    }
  }
}

// Returns the address that a task has said without its port.
std::string PlaceOf(const std::string& said, const std::string& task) {
  const std::string at = absl::StrCat(" is ", task, " at ");
  const size_t found = said.find(at), begin = found + at.size();
  return found == std::string::npos ? "" : said.substr(begin, said.find(':', begin) - begin);
}

TEST_F(SlurmPage, ItsInteractiveCommandsAndItsBatchScriptTrain) {
  const std::vector<std::string> by_srun = Blocks(kBySrun, "bash");
  EXPECT_THAT(Run(Blocks(kInside, "bash")[0], SourceFolder()), HasSubstr("Test accuracy"));
  const std::string on_one_node = Run(by_srun[0], SourceFolder());
  EXPECT_THAT(on_one_node, HasSubstr("Test accuracy"));
  ExpectTrainedTogether(on_one_node, {"chief:0", "worker:0", "worker:1", "ps:0"}, "chief:0, ps:0, worker:0-1");

  const std::string script = hosts_->shared() + "/batch.sh", output = hosts_->shared() + "/batch.out";
  std::ofstream(script) << by_srun[1];
  Run(absl::StrCat("sbatch --wait --output=", output, " ", script, " || { cat ", output, "; exit 1; }"),
      SourceFolder());
  const std::string said = PosixFileSystem().ReadFile(output).value_or("");
  EXPECT_THAT(said, HasSubstr("Test accuracy"));
  ExpectTrainedTogether(said, {"chief:0", "worker:0", "worker:1", "worker:2", "worker:3", "worker:4", "ps:0", "ps:1"},
                        "chief:0, ps:0-1, worker:0-4");
  EXPECT_NE(PlaceOf(said, "ps:0"), PlaceOf(said, "ps:1")) << "they are dealt out to two nodes";
  EXPECT_THAT(EntriesOf(hosts_->shared() + "/model"), Contains(HasSubstr("model.ckpt-")));
}

// An option that muster doesn't know is called a typing mistake where it is near to one that muster knows.
TEST_F(SlurmPage, NoOptionThatSbatchTellsOfIsATypingMistake) {
  const std::string help = slurm_->Ask({"sbatch", "--help"});
  std::set<std::string> names;
  for (size_t at = help.find("--"); at != std::string::npos; at = help.find("--", at)) {
    at += 2;
    const size_t end = help.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-", at);
    if (end > at) names.insert(help.substr(at, end - at));
  }
  EXPECT_THAT(names, SizeIs(Gt(80U))) << help;
  for (const std::string& name : names) {
    SlurmSetting setting;
    const std::string said(TakeSlurmSetting(setting, name, name == "signal" ? "B:USR1@60" : "x").message());
    EXPECT_THAT(said, AnyOf("", HasSubstr("isn't for experiments")));
  }
}

}  // namespace
}  // namespace muster::slurm_page_test
