#include "muster/launch/experiment/setup_plan.h"

#include <gmock/gmock.h>

#include "muster/base/testing/scratch_folder.h"

namespace muster::setup_plan_test {
namespace {

using ::testing::HasSubstr;

ExperimentFile FileOf(const std::string& setup) {
  return ParseExperimentFile("project: p\ntrain:\n  run: x\n  setup: " + setup + "\n", "muster.yml").value();
}

TEST(SetupKeyTest, IsThatOfTheContent) {
  const ScratchFolder folder;
  folder.Write("needs.txt", "one");
  const auto key = [&](const std::string& setup, const std::string& tree) {
    return SetupKey(FileOf(setup), folder.path(), tree).value();
  };
  EXPECT_EQ(SetupKey(ParseExperimentFile("project: p\ntrain: {run: x}\n", "f").value(), "/", "t").value(), "");
  const std::string whole = key("make", "tree1");
  EXPECT_EQ(whole, key("[make]", "tree1"));
  EXPECT_NE(whole, key("make", "tree2"));
  EXPECT_NE(whole, key("make all", "tree1"));
  const std::string of_file = key("{run: make, files: [needs.txt]}", "tree1");
  EXPECT_EQ(of_file, key("{run: make, files: [needs.txt]}", "tree2"));
  folder.Write("needs.txt", "two");
  EXPECT_NE(of_file, key("{run: make, files: [needs.txt]}", "tree1"));
  EXPECT_THAT(std::string(SetupKey(FileOf("{run: make, files: [none]}"), folder.path(), "t").status().message()),
              HasSubstr("muster.yml: train.setup.files: none can't be read"));
  folder.Write("more/file", "one");
  EXPECT_THAT(std::string(SetupKey(FileOf("{run: make, files: [more]}"), folder.path(), "t").status().message()),
              HasSubstr("train.setup.files: more is a folder; accepted are plain files"));
}

TEST(SetupKeyTest, MistakesInTheFile) {
  const auto mistake = [](const std::string& setup) {
    return std::string(
        ParseExperimentFile("project: p\ntrain:\n  run: x\n  setup: " + setup + "\n", "muster.yml").status().message());
  };
  EXPECT_THAT(mistake("make {{ depth }}"), HasSubstr("muster.yml:4: train.setup: has {{ depth }}, but is run once"));
  EXPECT_THAT(mistake("{files: [a]}"), HasSubstr("train.setup.run: is missing"));
  EXPECT_THAT(mistake("{run: make, files: [/etc/passwd]}"), HasSubstr("train.setup.files[1]: is \"/etc/passwd\""));
  EXPECT_THAT(mistake("{run: make, files: [a/../../b]}"), HasSubstr("accepted: a path below the folder"));
}

}  // namespace
}  // namespace muster::setup_plan_test
