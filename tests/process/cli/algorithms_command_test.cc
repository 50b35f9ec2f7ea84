// `muster algorithms`: the list, the description of each algorithm, and unknown names.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/algo/choice/algorithm_table.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/muster_command.h"

namespace muster::algorithms_command_test {
namespace {

using ::testing::AllOf, ::testing::EndsWith, ::testing::HasSubstr, ::testing::StartsWith;

std::string Shown(const std::vector<std::string>& words) { return MusterOut(Joined({"algorithms"}, words)); }

std::string Mistake(const std::vector<std::string>& words) { return MusterMistake(Joined({"algorithms"}, words)); }

TEST(AlgorithmsCommand, ListsEachOnALineInOrder) {
  const std::vector<std::string> lines = absl::StrSplit(Shown({}), '\n');
  const auto table = AlgorithmTable();
  ASSERT_GT(lines.size(), table.size());
  for (size_t i = 0; i < table.size(); ++i)
    EXPECT_THAT(lines[i],
                AllOf(StartsWith(absl::StrCat(table[i].name, " ")), EndsWith(absl::StrCat(" ", table[i].summary))));
}

TEST(AlgorithmsCommand, SaysOfOneWhatTheTableKnows) {
  const std::string shown = Shown({"downpour"});
  EXPECT_THAT(shown, StartsWith("downpour: asynchronous with local steps"));
  EXPECT_THAT(shown, HasSubstr("\n  each window:    θ̃ ← server_rule(θ̃, s)"));
  EXPECT_THAT(shown, HasSubstr("\n  --window         5                       λ: minibatches a commit"));
  EXPECT_THAT(shown, HasSubstr("\n  --fetch_window   (as window)             minibatches between"));
  EXPECT_THAT(shown, HasSubstr("\n  --worker_rule    adagrad                 by which"));
  EXPECT_THAT(shown, HasSubstr("\n  --learning_rate  (of worker_rule: 0.01)  short for"));
  EXPECT_THAT(shown, HasSubstr("\nReference\n  Dean et al., \"Large Scale Distributed Deep Networks\""));
  EXPECT_THAT(shown, HasSubstr("\nWhen to take it\n  Slow networks"));
}

TEST(AlgorithmsCommand, EveryOneIsShownWithAllItsParameters) {
  for (const AlgorithmInfo& info : AlgorithmTable()) {
    const std::string shown = Shown({std::string(info.name)});
    EXPECT_THAT(shown, StartsWith(absl::StrCat(info.name, ": ", info.summary, "\n")));
    for (const ParameterInfo& parameter : info.parameters) {
      EXPECT_THAT(shown, HasSubstr(absl::StrCat("\n  --", parameter.name, " "))) << info.name;
      EXPECT_THAT(shown, HasSubstr(absl::StrCat(" ", parameter.meaning, "\n"))) << info.name;
    }
  }
}

TEST(AlgorithmsCommand, AnAliasShowsWhatItMeans) {
  EXPECT_EQ(Shown({"eamsgd"}), Shown({"aeamsgd"}));
  EXPECT_EQ(Shown({"Staleness-Aware"}), Shown({"staleness_aware"}));
  EXPECT_THAT(Shown({"sync"}), HasSubstr("\nAlso called\n  sync, synchronous_sgd"));
  EXPECT_THAT(Shown({"allreduce"}), HasSubstr("muster run --ps 0"));
}

TEST(AlgorithmsCommand, AnUnknownNameIsAMistakeWithTheNearest) {
  EXPECT_THAT(Mistake({"downpuor"}), AllOf(StartsWith("muster algorithms: unknown algorithm \"downpuor\" (nearest: "
                                                      "downpour); accepted: hogwild, downpour, "),
                                           HasSubstr(", all_reduce")));
  EXPECT_THAT(Mistake({"zebra"}), StartsWith("muster algorithms: unknown algorithm \"zebra\"; accepted: hogwild"));
  EXPECT_THAT(Mistake({"agn", "adag"}), HasSubstr("unknown argument \"adag\""));
}

}  // namespace
}  // namespace muster::algorithms_command_test
