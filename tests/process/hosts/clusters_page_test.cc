// docs/clusters.md is followed word by word: its commands, files and tables, and the command of docs/first_run.md for
// hosts. Their ssh gets to the hosts by the test's configuration.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "muster/base/testing/built_at.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/engines.h"
#include "tests/process/testing/page_blocks.h"

namespace muster::clusters_page_test {
namespace {

using ::testing::AllOf, ::testing::Contains, ::testing::ContainsRegex, ::testing::ElementsAre, ::testing::HasSubstr,
    ::testing::SizeIs, ::testing::StartsWith;

constexpr char kPage[] = "clusters.md";
// A program that every host has.
constexpr char kSayWhere[] = "project: toy\ntrain:\n  framework: any\n  run: echo ran on $(uname -n)\n";

class ClustersPage : public OnEveryEngine {
 protected:
  void SetUp() override {
    OnEveryEngine::SetUp();
    if (IsSkipped()) return;
    const std::string config = Aside("ssh_config");
    std::ofstream(config) << "Host gpu1\nHostName " << SimulatedHosts::AddressOf("h1") << "\nHostKeyAlias h1\n"
                          << "Host *\nInclude " << hosts().ssh_config() << "\n";
    const std::string bin = WriteProgram("ssh", "exec /usr/bin/ssh -F " + config + " \"$@\"");
    environment_ = {absl::StrCat("PATH=", bin, ":", BinFolder(), ":/usr/bin:/bin")};
  }

  // The page's files say themselves where they run.
  std::string MoreOfFile() const override { return ""; }
  // Runs commands as a user types them, in the project unless a folder is named. They must end with 0.
  Said Follow(const std::string& commands, const std::string& folder = "") {
    ProcessOptions options = Options();
    if (!folder.empty()) options.directory = folder;
    Process process(hosts().On("h0", {"bash", "-ec", commands}), options);
    EXPECT_EQ(process.Wait(), 0) << commands << process.out << process.err;
    return {.exit_code = 0, .out = process.out, .err = process.err};
  }
  // Returns a folder that all hosts see.
  std::string SharedFolder() const {
    std::filesystem::create_directories(Aside("shared"));
    return Aside("shared");
  }
};

INSTANTIATE_TEST_SUITE_P(, ClustersPage, ::testing::Values("ssh"), EngineName);

TEST_P(ClustersPage, ItsFirstCommandsTrain) {
  const std::vector<std::string> blocks = BlocksOfPage(kPage, "", "bash");
  ASSERT_THAT(blocks, SizeIs(2));
  const std::string run = absl::StrReplaceAll(
      blocks[0], {{"build/release/bin/digits",
                   BinFolder() + "/digits --steps=40 --csv=" + SourceFolder() + "/examples/data/digits.csv"}});
  const Said said = Follow(run, SharedFolder());
  EXPECT_THAT(said.out + said.err, HasSubstr("Test accuracy "));
  Write("muster.yml", kSayWhere);
  EXPECT_THAT(LinesOf(Follow(blocks[1]).out, "1.master"), Contains("ran on h1"));
}

// Its relative paths are those of a checkout. What it trains is shared by the hosts, as it says.
TEST_P(ClustersPage, TheCommandOfTheFirstRunTrainsOnHosts) {
  const std::vector<std::string> blocks = BlocksOfPage("first_run.md", "The same program, five ways", "bash");
  ASSERT_THAT(blocks, SizeIs(1));
  const Said said = Follow(
      absl::StrReplaceAll(blocks[0], {{"build/release/bin/muster", BinFolder() + "/muster"},
                                      {"build/release/bin/digits", BinFolder() + "/digits --steps=40 --csv=" +
                                                                       SourceFolder() + "/examples/data/digits.csv"},
                                      {"/shared/digits", SharedFolder() + "/digits"}}),
      SharedFolder());
  EXPECT_THAT(said.out + said.err, AllOf(HasSubstr("Test accuracy "), HasSubstr("ps:1 is process "),
                                         HasSubstr("worker:3 is process "), HasSubstr(" on h2 at ")));
  EXPECT_THAT(EntriesOf(SharedFolder() + "/digits"), Contains(StartsWith("model.ckpt-4")));
}

// In the place of /opt/muster there is a folder beside what was built, so that hard links do for copies.
TEST_P(ClustersPage, ItLeadsFromNothingToATrainedModel) {
  if (!std::filesystem::exists(SourceFolder() + "/.venv/bin/python"))
    GTEST_SKIP() << NoTestBecause("no libtorch in .venv; ./dev setup makes it");
  const std::string chapter = "From nothing to a trained model", copy = BinFolder() + ".copied";
  const std::vector<std::string> files = BlocksOfPage(kPage, chapter, "yaml");
  std::vector<std::string> blocks = BlocksOfPage(kPage, chapter, "bash");
  ASSERT_THAT(files, SizeIs(1));
  ASSERT_THAT(blocks, SizeIs(4));
  ASSERT_THAT(blocks[1], StartsWith("mkdir -p /opt/muster\ncp -a "));
  std::filesystem::remove_all(copy);
  const std::string built = std::filesystem::relative(BinFolder(), SourceFolder());
  Follow(absl::StrReplaceAll(blocks[1], {{"cp -a ", "cp -al "}, {"build/release/bin", built}, {"/opt/muster", copy}}),
         SourceFolder());
  blocks.erase(blocks.begin() + 1);
  EXPECT_THAT(Follow("ldd " + copy + "/bin/digits").out, HasSubstr("libtorch_cpu.so => " + copy + "/"));
  Write("muster.yml", absl::StrReplaceAll(files[0], {{"/opt/muster", copy}}));
  std::string said;
  for (const std::string& block : blocks) said += Follow(block).out;
  std::filesystem::remove_all(copy);
  EXPECT_THAT(said, AllOf(ContainsRegex("1.master +\\| .*Test accuracy"), ContainsRegex("1.ps.1 +FINISHED +[^ ]+ +h1 "),
                          ContainsRegex("2.master +\\| .*Test accuracy")));
}

TEST_P(ClustersPage, ItsFolderIsCopied) {
  const std::vector<std::string> blocks = BlocksOfPage(kPage, "Code that hosts don't see", "bash");
  ASSERT_THAT(blocks, SizeIs(1));
  Write("train.sh", "#!/bin/sh\necho trained on $(uname -n)\n");
  std::filesystem::permissions(project() + "/train.sh", std::filesystem::perms::owner_all);
  const Said said = Follow(absl::StrReplaceAll(blocks[0], {{"/data/model", Aside("model")}}));
  EXPECT_THAT(After(said.out, "[worker:0] "), ElementsAre("trained on h1"));
  EXPECT_THAT(After(said.out, "[worker:1] "), ElementsAre("trained on h2"));
  EXPECT_THAT(said.err, HasSubstr("copied 1 file"));
}

TEST_P(ClustersPage, ItsExperimentIsSetUpAndPlaced) {
  const std::vector<std::string> files = BlocksOfPage(kPage, "Experiments on hosts", "yaml");
  ASSERT_THAT(files, SizeIs(1));
  Write("muster.yml",
        absl::StrReplaceAll(files[0], {{"user@h2", "root@h2"}, {"10.0.0.2", SimulatedHosts::AddressOf("h2")}}));
  Write("requirements.txt", "");
  Write("train.py", "import os, sys\nprint('python of', sys.prefix, 'on', os.uname().nodename)\n");
  const std::string shown = Follow("muster train").out;
  for (const auto& [task, host] : {std::pair("1.ps.1", "h1"), {"1.worker.1", "h2"}})
    EXPECT_THAT(LinesOf(shown, task),
                Contains(ContainsRegex(absl::StrCat("python of /run/home/.cache/muster/setup/.*/venv on ", host, "$"))))
        << shown;
  EXPECT_EQ(TasksOf("1")["1.worker.1"]["host"], "root@h2");
}

TEST_P(ClustersPage, ItsHostFileIsOne) {
  const std::vector<std::string> files = BlocksOfPage(kPage, "Which task runs where", "text");
  ASSERT_THAT(files, SizeIs(1));
  std::ofstream(Aside("hosts")) << absl::StrReplaceAll(
      files[0], {{"user@h2", "root@h2"}, {"10.0.0.2", SimulatedHosts::AddressOf("h2")}});
  const Said said =
      Follow("muster run --host_file " + Aside("hosts") + " --ps 1 --workers 3 -- sh -c 'echo on $(uname -n)'",
             SharedFolder());
  for (const auto& [task, host] : {std::pair("ps:0", "h1"), {"worker:0", "h1"}, {"worker:1", "h2"}, {"worker:2", "h1"}})
    EXPECT_THAT(After(said.out, absl::StrCat("[", task, "] ")), ElementsAre(absl::StrCat("on ", host))) << task;
}

// "`muster logs gpu1:4 -f`, also `status`": what stands in backticks.
std::vector<std::string> CommandsIn(const std::string& cell) {
  const std::vector<std::string> parts = absl::StrSplit(cell, '`');
  std::vector<std::string> commands;
  for (size_t i = 1; i < parts.size(); i += 2) commands.push_back(parts[i]);
  return commands;
}

TEST_P(ClustersPage, ItsCommandsForASupervisorElsewhereDoWhatTheySay) {
  const auto rows = RowsOfPage(kPage, "When this machine may go");
  ASSERT_THAT(rows, SizeIs(4));
  Write("muster.yml", absl::StrCat("on: local\n", kSayWhere));
  const Said train = Follow(CommandsIn(rows[0][0]).at(0));
  EXPECT_THAT(train.out, HasSubstr("ran on h1\n"));
  const std::vector<std::string> begun = After(absl::StrReplaceAll(train.err, {{"experiment gpu1:", "\n@"}}), "@");
  ASSERT_FALSE(begun.empty()) << train.err;
  const std::string id = begun[0].substr(0, begun[0].find_first_not_of("0123456789"));
  const std::string name = "gpu1:" + id;
  const auto follow = [&](const std::string& command) {
    return Follow(absl::StrReplaceAll(command, {{"gpu1:4", name}})).out;
  };
  const std::vector<std::string> commands = CommandsIn(rows[1][0]);
  ASSERT_THAT(commands, SizeIs(7));
  EXPECT_THAT(follow(commands[0]), HasSubstr("ran on h1\n"));
  const std::map<std::string, std::string> said = {{"status", "experiment " + name}, {"show", "experiment " + id},
                                                   {"results", "\nRUN  STATE"},      {"monitor", id},
                                                   {"kill", "had ended before"},     {"rerun", "ran on h1\n"}};
  for (size_t i = 1; i < commands.size(); ++i)
    EXPECT_THAT(follow(absl::StrCat("echo; muster ", commands[i], " gpu1:4 2>&1 || [ ", commands[i], " = kill ]")),
                HasSubstr(said.at(commands[i])));
  EXPECT_THAT(follow(CommandsIn(rows[2][0]).at(0)), ContainsRegex("\n" + id + " "));
  EXPECT_THAT(follow(CommandsIn(rows[3][0]).at(0)), HasSubstr("ran on h1\n"));
  EXPECT_EQ(Json({"status", name})["attempt"], 2);
}

TEST_P(ClustersPage, ItsCleaningUpFindsNothing) {
  const std::vector<std::string> blocks = BlocksOfPage(kPage, "What happens when something breaks", "bash");
  ASSERT_THAT(blocks, SizeIs(1));
  EXPECT_EQ(Follow(blocks[0]).out, "h1: nothing is left there\nh2: nothing is left there\n");
}

TEST_P(ClustersPage, RunsAtATimeThatWouldShareGpusAreRefused) {
  Write("muster.yml",
        "project: toy\nhosts: h1,h2\ntrain:\n  framework: any\n  parameters: {x: [1, 2]}\n  concurrency: 2\n"
        "  resources: {gpus: 1}\n  run: echo never\n");
  EXPECT_THAT(Mistake({"train"}), HasSubstr("runs at the same time would get the same GPUs of a host"));
}

// What the cases above take out of the page.
TEST(ClustersPageText, HasNoBlockThatIsNotRunHere) {
  size_t run = 0;
  for (const auto& [chapter, language, count] :
       std::vector<std::tuple<std::string, std::string, size_t>>{{"", "bash", 2},
                                                                 {"From nothing to a trained model", "yaml", 1},
                                                                 {"From nothing to a trained model", "bash", 4},
                                                                 {"Code that hosts don't see", "bash", 1},
                                                                 {"Experiments on hosts", "yaml", 1},
                                                                 {"Which task runs where", "text", 1},
                                                                 {"What happens when something breaks", "bash", 1}}) {
    EXPECT_THAT(BlocksOfPage(kPage, chapter, language), SizeIs(count)) << chapter;
    run += count;
  }
  EXPECT_EQ(CountOfBlocks(kPage), run);
}

}  // namespace
}  // namespace muster::clusters_page_test
