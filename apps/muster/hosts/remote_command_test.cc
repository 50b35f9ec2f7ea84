#include "apps/muster/hosts/remote_command.h"

#include <gmock/gmock.h>

#include <array>
#include <string>
#include <vector>

namespace muster::remote_command_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr;

bool TakesValue(const std::string& word) { return word == "--metric" || word == "--last"; }

absl::StatusOr<std::optional<RemoteCommand>> Of(const std::vector<std::string>& words) {
  return RemoteCommandIn(words, TakesValue);
}

TEST(RemoteNameTest, HasAHostAndAnExperiment) {
  const std::vector<std::array<std::string, 3>> names = {
      {"gpu1:4", "gpu1", "4"},
      {"me@gpu-1.example.org:4.3.worker.2", "me@gpu-1.example.org", "4.3.worker.2"},
      {"gpu1:", "gpu1", ""}};
  for (const auto& [word, host, name] : names) {
    const auto parsed = ParseRemoteName(word);
    ASSERT_TRUE(parsed.has_value()) << word;
    EXPECT_EQ(parsed->host, host);
    EXPECT_EQ(parsed->name, name);
  }
  for (const char* word : {"4", "4.worker.2", ":4", "-x:4", "a/b:4", "a b:4", "h1:worker", ""})
    EXPECT_FALSE(ParseRemoteName(word).has_value()) << word;
}

TEST(RemoteCommandTest, IsTheSameCommandWithoutTheHost) {
  const auto command = Of({"logs", "gpu1:4", "-f", "--last", "2"});
  ASSERT_TRUE(command.ok() && command->has_value());
  EXPECT_EQ((*command)->host, "gpu1");
  EXPECT_THAT((*command)->words, ElementsAre("logs", "4", "-f", "--last", "2"));
  const auto all = Of({"ls", "gpu1:", "--json"});
  ASSERT_TRUE(all.ok() && all->has_value());
  EXPECT_THAT((*all)->words, ElementsAre("ls", "--json"));
}

TEST(RemoteCommandTest, OtherCommandsAreThisMachines) {
  EXPECT_FALSE(Of({"logs", "4"}).value().has_value());
  EXPECT_FALSE(Of({"results", "4", "--metric", "top:1"}).value().has_value()) << "the value of a flag";
  EXPECT_FALSE(Of({"train", "--experiment", "gpu1:4"}).value().has_value()) << "it has its own way";
  EXPECT_FALSE(Of({"run", "--hosts", "h1:4"}).value().has_value());
  EXPECT_FALSE(Of({"reach", "10.0.0.1:4000", "10.0.0.2:4000"}).value().has_value());
  EXPECT_FALSE(Of({}).value().has_value());
}

TEST(RemoteCommandTest, TheWayThereHasItsOwnConfiguration) {
  for (const std::vector<std::string>& flag :
       std::vector<std::vector<std::string>>{{"--ssh_config", "c:1"}, {"--ssh-config=c:1"}}) {
    std::vector<std::string> words = {"logs", "gpu1:4"};
    words.insert(words.end(), flag.begin(), flag.end());
    const auto command = Of(words);
    ASSERT_TRUE(command.ok() && command->has_value());
    EXPECT_EQ((*command)->ssh_config, "c:1");
    EXPECT_THAT((*command)->words, ElementsAre("logs", "4"));
  }
  EXPECT_THAT(Of({"logs", "gpu1:4", "--ssh_config"}).status().message(), HasSubstr("which file?"));
}

TEST(RemoteCommandTest, NothingIsEndedByMistake) {
  EXPECT_FALSE(Of({"kill", "gpu1:4", "5"}).ok()) << "5 is this machine's";
  EXPECT_FALSE(Of({"kill", "5", "gpu1:4"}).ok());
  EXPECT_FALSE(Of({"kill", "gpu1:"}).ok());
  EXPECT_FALSE(Of({"rerun", "gpu1:"}).ok());
  EXPECT_TRUE(Of({"kill", "gpu1:", "--all"}).ok());
  EXPECT_TRUE(Of({"kill", "gpu1:4", "gpu1:5"}).ok());
  EXPECT_TRUE(Of({"logs", "gpu1:4", "--last", "5"}).ok());
}

TEST(RemoteCommandTest, WhatCannotBeForwardedIsNamed) {
  EXPECT_THAT(Of({"tensorboard", "gpu1:4"}).status().message(), HasSubstr("accepted for another host's: logs, status"));
  EXPECT_THAT(Of({"kill", "gpu1:4", "gpu2:5"}).status().message(),
              HasSubstr("gpu1 and gpu2: accepted are experiments of one host at a time"));
}

}  // namespace
}  // namespace muster::remote_command_test
