// docs/spark.md is followed word by word, on a real Spark.
#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "muster/base/testing/built_at.h"
#include "tests/process/spark/spark_experiment.h"
#include "tests/process/testing/page_blocks.h"
#include "tests/process/testing/python_with.h"

namespace muster::spark_page_test {
namespace {

using ::testing::AllOf, ::testing::ContainsRegex, ::testing::HasSubstr;

constexpr char kBegin[] = "From nothing to a trained model";

TEST(SparkPageText, HasNoBlockThatIsNotRunHere) {
  const std::vector<std::string> bash = BlocksOfPage("spark.md", kBegin, "bash");
  ASSERT_EQ(bash.size(), 3);
  EXPECT_TRUE(absl::StartsWith(bash[0], "pip install pyspark ")) << bash[0];
  EXPECT_EQ(CountOfBlocks("spark.md"), bash.size() + BlocksOfPage("spark.md", kBegin, "yaml").size());
}

TEST_F(SparkExperiment, ItsPageLeadsFromNothingToATrainedModel) {
  const std::vector<std::string> yaml = BlocksOfPage("spark.md", kBegin, "yaml");
  const std::vector<std::string> bash = BlocksOfPage("spark.md", kBegin, "bash");
  ASSERT_EQ(yaml.size(), 1);
  ASSERT_EQ(bash.size(), 3);
  const auto here = [](const std::string& text) {
    return absl::StrReplaceAll(text, {{"/opt/muster/bin", BinFolder()},
                                      {"/opt/muster/data", SourceFolder() + "/examples/data"},
                                      {"spark://head:7077", "'local-cluster[4,1,1024]'"}});
  };
  // As it is on the page, without what this suite adds to its files.
  std::ofstream(Options().directory + "/muster.yml") << here(yaml[0]);
  std::string said;
  for (const std::string& block : {bash[1], bash[2]}) {
    ProcessOptions options = Options();
    const char* path = std::getenv("PATH");
    options.environment.emplace_back("PATH", absl::StrCat(BinFolder(), ":", FolderOfPython(), ":", path));
    Process commands({"/usr/bin/bash", "-ec", here(block)}, options);
    EXPECT_EQ(commands.Wait(), 0) << block << commands.out << commands.err << Logs();
    said += commands.out + commands.err;
  }
  EXPECT_THAT(said, AllOf(HasSubstr("#SPARK {"), ContainsRegex("experiment 1 is job .+ of Spark"),
                          ContainsRegex("1.master +\\| .*Test accuracy"), ContainsRegex("1.ps.1 +FINISHED "),
                          ContainsRegex("2.master +\\| .*Test accuracy")));
  EXPECT_THAT(Read("experiments/2/job.out"), HasSubstr("muster: Spark has 4 of 4 slots"));
}

}  // namespace
}  // namespace muster::spark_page_test
