#include "apps/muster/commands/command_table.h"

#include <gmock/gmock.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "apps/muster/terminal/help_format.h"
#include "muster/base/testing/built_at.h"
#include "muster/base/version.h"

namespace muster::command_table_test {
namespace {

using ::testing::AllOf, ::testing::ContainsRegex, ::testing::HasSubstr, ::testing::Not;

// "supervise_command" of the line Supervise.
std::string FileOf(const std::string& name) {
  std::string file;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z' && !file.empty()) file += '_';
    file += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  }
  return file + "_command";
}

TEST(CommandTableTest, EveryFileOfACommandHasALine) {
  std::set<std::string> lines, files;
#define COMMAND(Name) lines.insert(FileOf(#Name));
  MUSTER_COMMANDS(COMMAND)
#undef COMMAND
  for (const auto& file : std::filesystem::recursive_directory_iterator(SourceFolder() + "/apps/muster/commands"))
    if (file.path().extension() == ".cc" && file.path().stem().string().ends_with("_command"))
      files.insert(file.path().stem());
  EXPECT_EQ(files, lines);
}

// README.md and the pages of docs/.
std::string Pages() {
  std::vector<std::filesystem::path> paths = {SourceFolder() + "/README.md"};
  for (const auto& file : std::filesystem::recursive_directory_iterator(SourceFolder() + "/docs"))
    if (file.path().extension() == ".md") paths.push_back(file.path());
  std::string all;
  for (const std::filesystem::path& path : paths) {
    std::ifstream stream(path);
    all.append(std::istreambuf_iterator<char>(stream), {});
  }
  return all;
}

class CommandsTest : public ::testing::Test {
 protected:
  CommandsTest() : app_("", "muster") {
    UseHelpFormat(app_);
    app_.require_subcommand(1);  // as in main: what follows the command is its own
    for (auto add : kCommands) add(app_, exit_code_);
  }

  std::vector<const CLI::App*> Visible() const {
    std::vector<const CLI::App*> commands;
    for (const CLI::App* command : static_cast<const CLI::App&>(app_).get_subcommands({}))
      if (!command->get_group().empty()) commands.push_back(command);
    return commands;
  }
  std::string Printed(const std::vector<std::string>& words) {
    ::testing::internal::CaptureStdout();
    app_.parse(std::vector<std::string>(words.rbegin(), words.rend()));
    return ::testing::internal::GetCapturedStdout();
  }

  CLI::App app_;
  int exit_code_ = -1;
};

TEST_F(CommandsTest, EachSaysWhatItDoesWithAnExampleOfItself) {
  EXPECT_GT(Visible().size(), 20u);
  for (const CLI::App* command : Visible()) {
    EXPECT_FALSE(command->get_description().empty()) << command->get_name();
    EXPECT_THAT(command->get_footer(), HasSubstr("muster " + command->get_name()));
  }
}

// Adds the mistakes of a command's options and of those of its subcommands.
void CheckOptions(const CLI::App& command, std::vector<std::string>& mistakes) {
  const std::set<std::string> raw = {"TEXT", "INT", "UINT", "FLOAT", "BOOLEAN", "ENUM", "NUMBER"};
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = absl::StrCat(command.get_name(), " ", option->get_name());
    if (option->get_description().empty()) mistakes.push_back(absl::StrCat(name, ": no description"));
    const std::string type = option->get_type_name();
    if (option->get_type_size() != 0 && (raw.contains(type) || type.find(':') != std::string::npos))
      mistakes.push_back(absl::StrCat(name, ": ", type, " isn't a word for its value"));
  }
  for (const CLI::App* below : command.get_subcommands({})) CheckOptions(*below, mistakes);
}

TEST_F(CommandsTest, EveryOptionIsDescribedInWords) {
  std::vector<std::string> mistakes;
  CheckOptions(app_, mistakes);
  EXPECT_THAT(mistakes, ::testing::IsEmpty());
  EXPECT_THAT(Printed({"help", "ps"}), Not(HasSubstr("Excludes")));
  EXPECT_THAT(Printed({"help", "place"}), AllOf(HasSubstr("--ps N (required)"), Not(HasSubstr("REQUIRED"))));
}

TEST_F(CommandsTest, HelpAndVersionAreCommands) {
  EXPECT_THAT(Printed({"help"}), AllOf(HasSubstr("Usage: muster "), HasSubstr("\n  train ")));
  EXPECT_THAT(Printed({"help", "train"}), AllOf(HasSubstr("Usage: muster train "), HasSubstr("--param NAME=VALUE")));
  EXPECT_THAT(Printed({"help", "checkpoint", "diff"}), HasSubstr("Usage: muster checkpoint diff "));
  EXPECT_EQ(Printed({"version"}), std::string("muster ") + kMusterVersion + "\n");
  EXPECT_EQ(exit_code_, 0);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(Printed({"help", "tran"}), "");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::StartsWith("muster help: unknown command \"tran\" (nearest: train); accepted: init, "));
  EXPECT_EQ(exit_code_, 2);
}

TEST_F(CommandsTest, EachStandsInAPage) {
  const std::string pages = Pages();
  for (const CLI::App* command : Visible())
    EXPECT_NE(pages.find("muster " + command->get_name()), std::string::npos)
        << "no page has a word about muster " << command->get_name();
}

TEST_F(CommandsTest, EachIsCompletedInEveryShellAndTheHiddenOnesInNone) {
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    const std::string script = Printed({"completion", shell});
    EXPECT_EQ(exit_code_, 0);
    for (const CLI::App* command : Visible()) EXPECT_THAT(script, HasSubstr("'" + command->get_name() + "'")) << shell;
    EXPECT_THAT(script, AllOf(Not(ContainsRegex("supervise['\" ]")), Not(HasSubstr("'agent'")))) << shell;
  }
}

}  // namespace
}  // namespace muster::command_table_test
