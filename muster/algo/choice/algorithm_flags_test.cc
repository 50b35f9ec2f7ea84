// The flags of AlgorithmChoice: which are taken, which stay, and how they change a program's own choice.
#include <gmock/gmock.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "muster/algo/choice/algorithm_choice.h"
#include "muster/algo/choice/algorithm_table.h"

namespace muster::algorithm_flags_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::Pair;

AlgorithmChoice Chosen(std::vector<std::string> arguments, const AlgorithmChoice& standard = {}) {
  const auto choice = AlgorithmChoice::FromArguments(arguments, standard).value();
  EXPECT_THAT(arguments, IsEmpty());
  return choice;
}

std::string Mistake(std::vector<std::string> arguments) {
  const std::vector<std::string> before = arguments;
  const auto choice = AlgorithmChoice::FromArguments(arguments, {});
  EXPECT_TRUE(absl::IsInvalidArgument(choice.status()));
  EXPECT_EQ(arguments, before);
  return std::string(choice.status().message());
}

TEST(AlgorithmFlags, AreTakenInBothFormsAndTheOthersStay) {
  std::vector<std::string> arguments = {"--steps=9",      "--algorithm", "downpour", "--window=7",
                                        "--fetch-window", "3",           "train",    "--server-rule=add",
                                        "--batch",        "32",          "--",       "--window=8"};
  const auto choice = AlgorithmChoice::FromArguments(arguments, {}).value();
  EXPECT_EQ(choice.name, "downpour");
  EXPECT_FALSE(choice.deterministic);
  EXPECT_THAT(choice.parameters,
              ElementsAre(Pair("fetch_window", "3"), Pair("server_rule", "add"), Pair("window", "7")));
  EXPECT_THAT(arguments, ElementsAre("--steps=9", "train", "--batch", "32", "--", "--window=8"));
}

TEST(AlgorithmFlags, EveryParameterOfTheTableIsOne) {
  for (const AlgorithmInfo& info : AlgorithmTable()) {
    for (const ParameterInfo& parameter : info.parameters) {
      EXPECT_THAT(Chosen({absl::StrCat("--", parameter.name, "=x")}).parameters,
                  ElementsAre(Pair(std::string(parameter.name), "x")));
    }
  }
}

TEST(AlgorithmFlags, TheNamesAreThoseOfAllThatAreTakenEachOnce) {
  std::vector<std::string> names = AlgorithmFlagNames();
  EXPECT_THAT(names, ::testing::IsSupersetOf({"algorithm", "deterministic", "window", "rho", "compensation"}));
  for (const std::string& name : names) {
    std::vector<std::string> arguments = {absl::StrCat("--", name, "=1")};
    (void)AlgorithmChoice::FromArguments(arguments, {});
    // "1" isn't an algorithm: --algorithm=1 is a mistake, which takes nothing.
    EXPECT_EQ(arguments.empty(), name != "algorithm") << name;
  }
  for (const AlgorithmInfo& info : AlgorithmTable()) {
    for (const ParameterInfo& parameter : info.parameters)
      EXPECT_THAT(names, ::testing::Contains(std::string(parameter.name)));
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

TEST(AlgorithmFlags, WithoutAnyItIsTheProgramsChoice) {
  const AlgorithmChoice choice = Chosen({}, {"agn", {{"window", "3"}}, true});
  EXPECT_EQ(choice.name, "agn");
  EXPECT_THAT(choice.parameters, ElementsAre(Pair("window", "3")));
  EXPECT_TRUE(choice.deterministic);
}

TEST(AlgorithmFlags, TheProgramsParametersHoldForItsOwnAlgorithmOnly) {
  const AlgorithmChoice standard = {"aeamsgd", {{"window", "3"}, {"momentum", "0.5"}}, false};
  EXPECT_THAT(Chosen({"--window=4"}, standard).parameters, ElementsAre(Pair("momentum", "0.5"), Pair("window", "4")));
  const AlgorithmChoice same = Chosen({"--algorithm=EAMSGD", "--window=4"}, standard);
  EXPECT_THAT(same.parameters, ElementsAre(Pair("momentum", "0.5"), Pair("window", "4")));
  EXPECT_TRUE(PlanAlgorithm(same, {.workers = 2}).ok());
  const AlgorithmChoice other = Chosen({"--algorithm=agn", "--window=4"}, standard);
  EXPECT_EQ(other.name, "agn");
  EXPECT_THAT(other.parameters, ElementsAre(Pair("window", "4")));
}

TEST(AlgorithmFlags, WhatTheUserSaysTakesThePlaceOfWhatWouldContradictIt) {
  const AlgorithmChoice rated = {"downpour_easy", {{"worker_rule", "sgd:weight_decay=0.5,learning_rate=0.1"}}, false};
  const AlgorithmChoice faster = Chosen({"--learning_rate=0.7"}, rated);
  EXPECT_THAT(faster.parameters,
              ElementsAre(Pair("learning_rate", "0.7"), Pair("worker_rule", "sgd:weight_decay=0.5")));
  const auto plan = PlanAlgorithm(faster, {}).value();
  EXPECT_EQ(plan.commit.worker_rule->rule.learning_rate, 0.7);
  EXPECT_EQ(plan.commit.worker_rule->rule.weight_decay, 0.5);

  const AlgorithmChoice quick = {"downpour_easy", {{"learning_rate", "0.1"}}, false};
  EXPECT_THAT(Chosen({"--worker_rule=adam"}, quick).parameters, ElementsAre(Pair("worker_rule", "adam")));
  EXPECT_THAT(Chosen({"--server_rule=sgd"}, quick).parameters,
              ElementsAre(Pair("learning_rate", "0.1"), Pair("server_rule", "sgd")));
  EXPECT_THAT(Chosen({"--alpha=0.1"}, {"aeasgd", {{"rho", "5"}}, false}).parameters, ElementsAre(Pair("alpha", "0.1")));
  EXPECT_THAT(Chosen({"--rho=5"}, {"aeasgd", {{"alpha", "0.1"}}, false}).parameters, ElementsAre(Pair("rho", "5")));
}

TEST(AlgorithmFlags, AContradictionOfTheUsersOwnStaysOne) {
  const AlgorithmChoice choice = Chosen({"--learning_rate=1", "--server_rule=sgd:learning_rate=2"});
  EXPECT_THAT(choice.parameters, ElementsAre(Pair("learning_rate", "1"), Pair("server_rule", "sgd:learning_rate=2")));
  EXPECT_FALSE(PlanAlgorithm(choice, {}).ok());
}

TEST(AlgorithmFlags, DeterministicIsASwitch) {
  std::vector<std::string> arguments = {"--deterministic", "train"};
  EXPECT_TRUE(AlgorithmChoice::FromArguments(arguments, {})->deterministic);
  EXPECT_THAT(arguments, ElementsAre("train"));
  EXPECT_TRUE(Chosen({"--deterministic=1"}).deterministic);
  EXPECT_TRUE(Chosen({"--deterministic=true"}).deterministic);
  EXPECT_FALSE(Chosen({"--deterministic=0"}, {"hogwild", {}, true}).deterministic);
  EXPECT_FALSE(Chosen({"--deterministic=false"}, {"hogwild", {}, true}).deterministic);
  EXPECT_THAT(Mistake({"--deterministic=maybe"}), HasSubstr("--deterministic is \"maybe\"; accepted: "));
}

TEST(AlgorithmFlags, AnEmptyValueIsAMistake) {
  EXPECT_THAT(Mistake({"--window="}), HasSubstr("--window has no value; accepted: --window=N"));
  EXPECT_THAT(Mistake({"--learning-rate", ""}), HasSubstr("--learning_rate has no value"));
  EXPECT_THAT(Mistake({"--algorithm="}), HasSubstr("--algorithm has no value; accepted: --algorithm=NAME"));
  EXPECT_THAT(Mistake({"--deterministic="}), HasSubstr("--deterministic has no value"));
  EXPECT_THAT(Mistake({"--server_rule="}), HasSubstr("--server_rule has no value"));
}

TEST(AlgorithmFlags, MistakesTakeNothing) {
  EXPECT_THAT(Mistake({"--window=4", "--window", "5"}),
              HasSubstr("--window is given twice, \"4\" and \"5\"; accepted: once"));
  EXPECT_THAT(Mistake({"--fetch_window=4", "--fetch-window=4"}), HasSubstr("--fetch_window is given twice"));
  EXPECT_THAT(Mistake({"--algorithm=agn", "--algorithm=agn"}), HasSubstr("--algorithm is given twice"));
  EXPECT_THAT(Mistake({"--steps=1", "--window"}), HasSubstr("--window has no value; accepted: --window=N"));
  EXPECT_THAT(Mistake({"--algorithm=agm"}), AllOf(HasSubstr("\"agm\" (nearest: agn)"), HasSubstr("accepted: hogwild")));
}

TEST(AlgorithmFlags, AreTakenOutOfMainsArguments) {
  std::string words[] = {"program", "--steps=1", "--algorithm=agn", "--window", "3", "rest"};
  char* argv[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(),
                  words[4].data(), words[5].data(), nullptr};
  int argc = 6;
  const AlgorithmChoice choice = AlgorithmChoice::FromCommandLine(argc, argv, {});
  EXPECT_EQ(choice.name, "agn");
  EXPECT_THAT(choice.parameters, ElementsAre(Pair("window", "3")));
  ASSERT_EQ(argc, 3);
  EXPECT_EQ(argv[1], words[1].data());
  EXPECT_EQ(argv[2], words[5].data());
  EXPECT_EQ(argv[3], nullptr);
}

TEST(AlgorithmFlagsDeathTest, MainEndsWithTwoAndOneLine) {
  std::string words[] = {"some/folder/program", "--algorithm=downpuor"};
  char* argv[] = {words[0].data(), words[1].data(), nullptr};
  int argc = 2;
  EXPECT_EXIT(AlgorithmChoice::FromCommandLine(argc, argv, {}), ::testing::ExitedWithCode(2),
              "^program: unknown algorithm \"downpuor\" \\(nearest: downpour\\)");
}

TEST(AlgorithmFlags, HelpNamesTheSwitchAndWhereToReadOn) {
  EXPECT_THAT(AlgorithmFlagsHelp(),
              AllOf(HasSubstr("--algorithm=NAME"), HasSubstr("--deterministic"), HasSubstr("`muster algorithms`")));
}

}  // namespace
}  // namespace muster::algorithm_flags_test
