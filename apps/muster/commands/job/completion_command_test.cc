#include <gmock/gmock.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "apps/muster/commands/command_table.h"

namespace muster::completion_command_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr, ::testing::Not;

// A program with a command of a command, flags with and without values, and a hidden command.
class CompletionTest : public ::testing::Test {
 protected:
  CompletionTest() : app_("", "muster") {
    AddCompletionCommand(app_, exit_code_);
    CLI::App* tree = app_.add_subcommand("tree", "Plants 'em");
    tree->add_flag("-d,--deep", deep_, "With roots: long ones");
    CLI::App* fell = tree->add_subcommand("fell", "Fells it");
    fell->add_option("ID", id_, "Which");
    fell->add_option("--axe", axe_, "Its axe");
    app_.add_subcommand("secret", "")->group("");
  }

  std::string Script(const std::string& shell) {
    ::testing::internal::CaptureStdout();
    app_.parse(std::vector<std::string>{shell, "completion"});
    return ::testing::internal::GetCapturedStdout();
  }

  CLI::App app_;
  std::string id_, axe_;
  bool deep_ = false;
  int exit_code_ = -1;
};

TEST_F(CompletionTest, Bash) {
  EXPECT_THAT(Script("bash"),
              AllOf(HasSubstr("case \"$next\" in 'completion'|'tree'|'tree fell') command=$next"),
                    HasSubstr("'') words='completion tree' flags='--help -h' ;;"),
                    HasSubstr("'completion') words='bash zsh fish' "),
                    HasSubstr("'tree') words='fell' flags='--help -h --deep -d' ;;"),
                    HasSubstr("'tree fell') words='' flags='--help -h --axe' ids=1 ;;"), Not(HasSubstr("secret"))));
  EXPECT_EQ(exit_code_, 0);
}

TEST_F(CompletionTest, ZshShowsDescriptions) {
  EXPECT_THAT(Script("zsh"), AllOf(HasSubstr(R"('tree:Plants '\''em')"), HasSubstr("'--deep:With roots: long ones'"),
                                   HasSubstr("ids=(1)"), Not(HasSubstr("secret"))));
}

TEST_F(CompletionTest, FishKnowsWhichFlagsTakeAValue) {
  EXPECT_THAT(Script("fish"), AllOf(HasSubstr(R"(-f -a tree -d 'Plants \'em')"),
                                    HasSubstr("\"__muster_at 'tree'\" -l deep -s d -d 'With roots: long ones'"),
                                    HasSubstr("\"__muster_at 'tree fell'\" -l axe -r -d 'Its axe'"),
                                    HasSubstr("-f -a '(muster ls --all --last 100 --ids"), Not(HasSubstr("secret"))));
}

TEST_F(CompletionTest, AnotherShellIsAMistake) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Script("csh"), "");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "muster completion: 'csh': accepted are bash, zsh, fish\n");
  EXPECT_EQ(exit_code_, 2);
}

}  // namespace
}  // namespace muster::completion_command_test
