#include "muster/launch/spec/file_template.h"

#include <gmock/gmock.h>

#include <regex>

#include "muster/launch/spec/parameters.h"

namespace muster::file_template_test {
namespace {

using ::testing::IsEmpty, ::testing::SizeIs;

constexpr Framework kAll[] = {Framework::kMuster, Framework::kTensorflow, Framework::kPytorch, Framework::kAny};

TEST(ExperimentFileTemplate, IsValidForEachFramework) {
  for (const Framework framework : kAll) {
    const auto file = ParseExperimentFile(ExperimentFileTemplate(framework, "toaster"), "muster.yml");
    ASSERT_TRUE(file.ok()) << Name(framework) << "\n" << file.status();
    EXPECT_EQ(file->framework, framework);
    EXPECT_EQ(file->project, "toaster");
    EXPECT_THAT(file->warnings, IsEmpty());
    const auto runs = AllCombinations(file->parameters).value();
    ASSERT_THAT(runs, SizeIs(1));
    for (const std::string& command : file->run) {
      EXPECT_TRUE(FillTemplate(command, runs.front()).ok()) << command;
    }
  }
}

TEST(ExperimentFileTemplate, ItsExamplesAreValidToo) {
  for (const Framework framework : kAll) {
    const std::string text = ExperimentFileTemplate(framework, "toaster");
    const std::string taken = std::regex_replace(text, std::regex("#([a-z])"), "$1");
    ASSERT_NE(taken, text);
    const auto file = ParseExperimentFile(taken, "muster.yml");
    ASSERT_TRUE(file.ok()) << Name(framework) << "\n" << taken << file.status();
    EXPECT_THAT(file->parameters, SizeIs(4));
    EXPECT_THAT(file->volumes, SizeIs(2));
    EXPECT_THAT(file->install, SizeIs(1));
    EXPECT_EQ(file->resources.cpus, 2);
  }
}

TEST(ProjectNameOf, IsANameWhateverTheFolder) {
  EXPECT_EQ(ProjectNameOf("tea-timer"), "tea-timer");
  EXPECT_EQ(ProjectNameOf("my project (2)"), "my-project--2-");
  EXPECT_EQ(ProjectNameOf(".hidden"), "hidden");
  EXPECT_EQ(ProjectNameOf("é"), "project");
  EXPECT_EQ(ProjectNameOf(""), "project");
  EXPECT_THAT(ProjectNameOf(std::string(300, 'x')), SizeIs(100));
}

}  // namespace
}  // namespace muster::file_template_test
