#include "muster/launch/spec/folded_command.h"

#include <gtest/gtest.h>

#include "absl/strings/str_split.h"
#include "muster/launch/spec/yaml_tree.h"

namespace muster::folded_command_test {
namespace {

// Returns the command of `run: >-` with these lines below it.
std::string Command(const std::string& lines) {
  const std::string text = "run: >-\n" + lines;
  const auto tree = ParseYaml(text, "x.yml");
  EXPECT_TRUE(tree.ok()) << tree.status();
  const std::vector<std::string> split = absl::StrSplit(lines, '\n');
  return FoldedCommand(tree->Find("run")->text, {split.begin(), split.end()});
}

TEST(FoldedCommandTest, DeeperLinesThatBeginWithADashContinueTheCommand) {
  EXPECT_EQ(Command("  python a.py --one 1\n              --two 2\n              -t 3\n"),
            "python a.py --one 1 --two 2 -t 3");
  EXPECT_EQ(Command("  python a.py\n    --one 1\n    --two 2"), "python a.py --one 1 --two 2");
}

TEST(FoldedCommandTest, SoDoLinesAfterABlankLine) {
  EXPECT_EQ(Command("  python a.py\n\n    --one 1\n\n  --two 2\n"), "python a.py --one 1 --two 2");
}

TEST(FoldedCommandTest, ALineAfterABackslashContinuesTheCommand) {
  EXPECT_EQ(Command("  python a.py \\\n  one \\\n  two\n"), "python a.py one two");
  EXPECT_EQ(Command("  python a.py \\\n      one \\\n      two\n"), "python a.py one two");
  EXPECT_EQ(Command("  python a.py\\\r\n      one\r\n"), "python a.py one");
}

TEST(FoldedCommandTest, ABackslashWithinALineIsTheShells) {
  EXPECT_EQ(Command("  python my\\ file.py\n  one\n"), "python my\\ file.py one");
  EXPECT_EQ(Command("  python a.py \\\\\n  one\n"), "python a.py \\\\ one");
  EXPECT_EQ(Command("  python a.py \\\n"), "python a.py \\");
}

TEST(FoldedCommandTest, OtherLinesAreAsYamlReadsThem) {
  EXPECT_EQ(Command("  python a.py\n  one\n\n  python b.py\n"), "python a.py one\npython b.py");
  EXPECT_EQ(Command("  for i in 1 2; do\n    echo $i - 1\n  done\n"), "for i in 1 2; do\n  echo $i - 1\ndone");
}

TEST(FoldedCommandTest, StopsAtTheEndOfTheText) {
  const std::string text = "python a.py";
  EXPECT_EQ(FoldedCommand(text, {"  python a.py", "parameters:", "  - one"}), text);
  EXPECT_EQ(FoldedCommand(text, {}), text);
  EXPECT_EQ(FoldedCommand("", {"parameters:"}), "");
}

}  // namespace
}  // namespace muster::folded_command_test
