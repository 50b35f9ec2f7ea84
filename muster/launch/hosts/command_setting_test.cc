#include "muster/launch/hosts/command_setting.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "muster/launch/hosts/command_json.h"

namespace muster::command_setting_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr;

std::string MistakeOf(CommandPart part, const std::vector<std::string>& argv) {
  const absl::Status status = CheckCommandWords(part, argv);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

TEST(CommandSettingTest, PlaceholdersBecomeValuesAndOtherBracesStay) {
  const CommandValues values = {{"host", "n1"}, {"job", "17"}};
  EXPECT_THAT(ExpandCommand({"docker", "exec", "{host}-{job}", "{{.ID}}{{end}}", "{\"a\": 1}", "{", "{}"}, values),
              ElementsAre("docker", "exec", "n1-17", "{{.ID}}{{end}}", "{\"a\": 1}", "{", "{}"));
  EXPECT_THAT(ExpandCommand({"x", "{id}"}, values), ElementsAre("x", "")) << "it has no value";
}

TEST(CommandSettingTest, ValuesAreNotExpandedAgain) {
  EXPECT_THAT(ExpandCommand({"{host}"}, {{"host", "{job}"}, {"job", "17"}}), ElementsAre("{job}"));
}

TEST(CommandSettingTest, TheAgentsWordsStandInPlace) {
  EXPECT_THAT(ExpandCommand({"run", "{agent}", "end"}, {}, {"sh", "-c", "x y"}),
              ElementsAre("run", "sh", "-c", "x y", "end"));
}

TEST(CommandSettingTest, AnUnknownPlaceholderIsNamedWithTheNearest) {
  EXPECT_THAT(MistakeOf(CommandPart::kStart, {"docker", "exec", "{hots}", "{agent}"}),
              AllOf(HasSubstr("{hots}, which there isn't (nearest: host)"), HasSubstr("accepted: {experiment}, "),
                    HasSubstr("{agent_line}")));
  EXPECT_THAT(MistakeOf(CommandPart::kAcquire, {"get", "{job}"}), HasSubstr("{job}")) << "nobody knows it yet";
  EXPECT_THAT(MistakeOf(CommandPart::kRelease, {"drop", "{host}"}), HasSubstr("{host}")) << "it is for all hosts";
}

TEST(CommandSettingTest, AStartMustStartTheAgent) {
  EXPECT_THAT(MistakeOf(CommandPart::kStart, {"docker", "exec", "{host}"}), HasSubstr("starts nothing"));
  EXPECT_THAT(MistakeOf(CommandPart::kStart, {"sh", "-c", "exec {agent}"}), HasSubstr("as a part of 'exec {agent}'"));
  EXPECT_EQ(CheckCommandWords(CommandPart::kStart, {"ssh", "{host}", "{agent_line}"}), absl::OkStatus());
  EXPECT_THAT(MistakeOf(CommandPart::kState, {}), HasSubstr("has no program"));
}

TEST(CommandSettingTest, ACommandIsShownAsItCouldBeTyped) {
  EXPECT_EQ(TypedCommand({"./get", "--n", "2", "a b"}), "./get --n 2 'a b'");
}

TEST(CommandSettingTest, KeepsEverythingAsJson) {
  CommandSetting setting{.hosts = 3, .folder = "/project"};
  setting.acquire = {
      .argv = {"get", "{hosts}"}, .time_limit = absl::Minutes(5), .retry_exit = {75}, .refused_exit = {2, 3}};
  setting.start = {.argv = {"go", "{agent}"}, .time_limit = absl::Seconds(1)};
  setting.state = {.argv = {"ask"}, .time_limit = absl::Seconds(2), .gone_exit = {4}};
  EXPECT_EQ(CommandsOfJson(nlohmann::json::parse(JsonOfCommands(setting).dump())), setting);
}

}  // namespace
}  // namespace muster::command_setting_test
