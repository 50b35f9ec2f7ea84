#include "muster/cluster/identity/flag_scan.h"

#include <gmock/gmock.h>

namespace muster::flag_scan_test {
namespace {

using ::testing::ElementsAre, ::testing::IsEmpty;

std::optional<KnownFlag> Find(const std::string& name) {
  if (name == "size" || name == "Size") return KnownFlag{"size", "N"};
  if (name == "file") return KnownFlag{.name = "file", .accepted = "FILE", .may_be_empty = true};
  if (name == "quick") return KnownFlag{"quick", "0|1", /*is_switch=*/true};
  return std::nullopt;
}

std::vector<std::string> Given(const std::vector<std::string>& arguments) {
  std::vector<std::string> given;
  const auto scan = ScanFlags(arguments, Find);
  if (!scan.ok()) return {std::string(scan.status().message())};
  for (const GivenFlag& flag : scan->given) given.push_back(flag.name + ":" + flag.value);
  return given;
}

TEST(FlagScan, TakesBothFormsByTheNameThatIsKnown) {
  EXPECT_THAT(Given({"--size=3", "x", "--Size", "-4", "--size=a=b"}), ElementsAre("size:3", "size:-4", "size:a=b"));
  EXPECT_THAT(Given({"--sizes=3", "-size=3", "size=3", "--"}), IsEmpty());
}

TEST(FlagScan, ASwitchLeavesTheNextWord) {
  std::vector<std::string> arguments = {"--quick", "train", "--quick=0"};
  const auto scan = ScanFlags(arguments, Find).value();
  EXPECT_THAT(Given(arguments), ElementsAre("quick:1", "quick:0"));
  KeepArguments(scan.kept, arguments);
  EXPECT_THAT(arguments, ElementsAre("train"));
}

TEST(FlagScan, AFlagWithoutAValueIsAMistake) {
  EXPECT_THAT(Given({"--size"}), ElementsAre("--size has no value; accepted: --size=N"));
  EXPECT_THAT(Given({"--size", "--quick"}), ElementsAre("--size has no value; accepted: --size=N"));
}

TEST(FlagScan, AnEmptyValueIsAMistakeExceptWhereItMeansNone) {
  EXPECT_THAT(Given({"--size="}), ElementsAre("--size has no value; accepted: --size=N"));
  EXPECT_THAT(Given({"--size", ""}), ElementsAre("--size has no value; accepted: --size=N"));
  EXPECT_THAT(Given({"--quick="}), ElementsAre("--quick has no value; accepted: --quick=0|1"));
  EXPECT_THAT(Given({"--file=", "--file", ""}), ElementsAre("file:", "file:"));
}

TEST(FlagScan, EmptyValuesAreSplitOff) {
  const std::vector<std::string> plain = {"a", "--size=1", "--size", "--file=", "--quick", "--other=", "-s", "--size"};
  EXPECT_EQ(SplitEmptyValues(plain, Find).value(), plain) << "the word behind --size is its value";
  EXPECT_THAT(SplitEmptyValues({"--file=", "--size=2", "--", "--size="}, Find).value(),
              ElementsAre("--file", "", "--size=2", "--", "--size="));
  EXPECT_EQ(SplitEmptyValues({"--size=", "2"}, Find).status().message(), "--size has no value; accepted: --size=N");
  EXPECT_EQ(SplitEmptyValues({"--size", ""}, Find).status().message(), "--size has no value; accepted: --size=N");
}

TEST(FlagScan, WhatIsBehindTwoDashesStays) {
  std::vector<std::string> arguments = {"a", "--size=1", "--", "--size=2"};
  const auto scan = ScanFlags(arguments, Find).value();
  KeepArguments(scan.kept, arguments);
  EXPECT_THAT(arguments, ElementsAre("a", "--", "--size=2"));
}

TEST(FlagScan, MainsArgumentsKeepTheProgramsName) {
  std::string words[] = {"program", "--size", "3", "rest"};
  char* argv[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(), nullptr};
  int argc = 4;
  EXPECT_THAT(ArgumentsOf(argc, argv), ElementsAre("--size", "3", "rest"));
  KeepArguments(ScanFlags(ArgumentsOf(argc, argv), Find)->kept, argc, argv);
  ASSERT_EQ(argc, 2);
  EXPECT_EQ(argv[0], words[0].data());
  EXPECT_EQ(argv[1], words[3].data());
  EXPECT_EQ(argv[2], nullptr);
}

}  // namespace
}  // namespace muster::flag_scan_test
