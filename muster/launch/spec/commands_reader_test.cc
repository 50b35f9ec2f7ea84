#include "muster/launch/spec/commands_reader.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/spec/experiment_file.h"

namespace muster::commands_reader_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::Not;

constexpr char kCommands[] = R"(acquire:
  argv: [./get_hosts, --n, "{hosts}"]
  timeout: 5m
  retry_exit: [75]
  refused_exit: [2, 3]
start: {argv: [docker, exec, -i, "{host}", "{agent}"]}
state: {argv: [./state, "{job}"], timeout: 3s, gone_exit: [4]}
)";

std::string MistakesIn(const std::string& text) {
  const ScratchFolder folder;
  folder.Write("commands.yml", text);
  const auto read = ReadCommandsFile(folder / "commands.yml");
  EXPECT_TRUE(absl::IsInvalidArgument(read.status())) << read.status();
  return std::string(read.status().message());
}

TEST(CommandsReaderTest, ReadsThemFromAFileOfTheirOwn) {
  const ScratchFolder folder;
  folder.Write("commands.yml", kCommands);
  const auto read = ReadCommandsFile(folder / "commands.yml");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(read->acquire.argv, ElementsAre("./get_hosts", "--n", "{hosts}"));
  EXPECT_EQ(read->acquire.time_limit, absl::Minutes(5));
  EXPECT_THAT(read->acquire.retry_exit, ElementsAre(75));
  EXPECT_THAT(read->acquire.refused_exit, ElementsAre(2, 3));
  EXPECT_EQ(read->start.time_limit, UsualTimeLimit(CommandPart::kStart));
  EXPECT_EQ(read->state.time_limit, absl::Seconds(3));
  EXPECT_THAT(read->state.gone_exit, ElementsAre(4));
  EXPECT_THAT(read->release.argv, IsEmpty());
  EXPECT_EQ(read->folder, folder.path()) << "in which they run";
  EXPECT_THAT(std::string(ReadCommandsFile(folder / "none.yml").status().message()),
              HasSubstr("none.yml' isn't there"));
}

TEST(CommandsReaderTest, AllMistakesAreNamedWithTheirLines) {
  const std::string mistakes = MistakesIn(R"(acquire:
  argv: ./get_hosts --n 3
  timeout: soon
  retry_exit: [0]
start: {argv: [docker, exec, "{hots}", "{agent}"], gone_exit: [1]}
states: {argv: [x]}
)");
  EXPECT_THAT(mistakes,
              AllOf(HasSubstr("commands.yml:2: acquire.argv: is one text, which no shell reads"),
                    HasSubstr(":3: acquire.timeout: is no time limit"),
                    HasSubstr(":4: acquire.retry_exit: has what is no exit code"),
                    HasSubstr(":5: start.argv: has the placeholder {hots}, which there isn't (nearest: host)"),
                    HasSubstr(":5: start.gone_exit: there is no such key"),
                    HasSubstr(":6: states: there is no such command (nearest: state)")));
  EXPECT_THAT(MistakesIn("acquire: {argv: [x]}\n"), HasSubstr("start: is missing"));
}

std::string WithHostsBy(const std::string& commands) {
  std::string text = "project: toy\non: command\nhosts: 2\nhosts_by:\n";
  for (size_t at = 0; at < commands.size();) {
    const size_t end = commands.find('\n', at) + 1;
    absl::StrAppend(&text, "  ", commands.substr(at, end - at));
    at = end;
  }
  return absl::StrCat(text, "train:\n  framework: any\n  run: echo hello\n");
}

TEST(CommandsReaderTest, AnExperimentFileHasThemToo) {
  const auto file = ParseExperimentFile(WithHostsBy(kCommands), "muster.yml");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(file->hosts.command.has_value());
  EXPECT_EQ(file->hosts.on, "command");
  EXPECT_THAT(file->hosts.command->start.argv, ElementsAre("docker", "exec", "-i", "{host}", "{agent}"));
}

TEST(CommandsReaderTest, TheirMistakesAreThoseOfTheFile) {
  const auto file = ParseExperimentFile(WithHostsBy("acquire: {argv: [get, \"{host}\"]}\nstart: go\n"), "muster.yml");
  const std::string mistakes(file.status().message());
  EXPECT_THAT(mistakes,
              AllOf(HasSubstr("hosts_by.acquire.argv: has the placeholder {host}, which there isn't (nearest: "),
                    HasSubstr("hosts_by.start: is"), Not(HasSubstr("hosts_by.start: is no map"))));
}

}  // namespace
}  // namespace muster::commands_reader_test
