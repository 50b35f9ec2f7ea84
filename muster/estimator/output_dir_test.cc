#include "muster/estimator/output_dir.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "muster/base/files/memory_file_system.h"
#include "muster/base/wrong_configuration.h"

namespace muster::output_dir_test {
namespace {

using ::testing::HasSubstr, ::testing::IsEmpty;

// All sources; removing one shows the next.
OutputDirInputs AllSay() {
  return {.model_dir = "/said/model_dir",
          .root = "/runs",
          .environment = {.output_dir = "/said/output_dir", .experiment_id = "18", .job_name = "iris-0"}};
}

std::string Chosen(const OutputDirInputs& inputs) {
  MemoryFileSystem files;
  return ChooseOutputDir(inputs, files).value();
}

void ExpectRefused(const absl::StatusOr<std::string>& chosen, const std::vector<std::string>& texts) {
  ASSERT_FALSE(chosen.ok()) << *chosen;
  EXPECT_TRUE(IsWrongConfiguration(chosen.status())) << chosen.status();
  for (const std::string& text : texts) EXPECT_THAT(chosen.status().message(), HasSubstr(text));
}

TEST(OutputDirTest, TheRootIsTheFlagsOrTheLaunchersOrTheUsualOne) {
  OutputDirInputs inputs{.root = "/flag", .environment = {.experiment_id = "18", .output_root = "/launcher"}};
  EXPECT_EQ(Chosen(inputs), "/flag/18");
  inputs.root.clear();
  EXPECT_EQ(Chosen(inputs), "/launcher/18");
  inputs.environment.output_root = "";
  EXPECT_EQ(Chosen(inputs), "/data/tensorflow-output/18");
}

TEST(OutputDirTest, TheFirstWhoSaysIt) {
  OutputDirInputs inputs = AllSay();
  EXPECT_EQ(Chosen(inputs), "/said/model_dir");
  inputs.model_dir.clear();
  EXPECT_EQ(Chosen(inputs), "/said/output_dir");
  inputs.environment.output_dir.reset();
  EXPECT_EQ(Chosen(inputs), "/runs/18");
  inputs.environment.experiment_id.reset();
  EXPECT_EQ(Chosen(inputs), "/runs/iris-0");
  inputs.root.clear();
  EXPECT_EQ(Chosen(inputs), "/data/tensorflow-output/iris-0");
}

TEST(OutputDirTest, AnEmptyVariableIsNone) {
  OutputDirInputs inputs = AllSay();
  inputs.model_dir.clear();
  inputs.environment.output_dir = "";
  inputs.environment.experiment_id = "";
  EXPECT_EQ(Chosen(inputs), "/runs/iris-0");
}

TEST(OutputDirTest, NobodySaysIt) {
  MemoryFileSystem files;
  ExpectRefused(ChooseOutputDir({.root = "/runs"}, files),
                {"--model_dir", "TF_CONFIG", "OUTPUT_DIR", "EXPERIMENT_ID", "JOB_NAME", "/runs", "--output_root"});
}

TEST(OutputDirTest, AnIdIsAName) {
  for (const std::string id : {"../18", "/etc", "a/b", "..", "."}) {
    SCOPED_TRACE(id);
    MemoryFileSystem files;
    ExpectRefused(ChooseOutputDir({.root = "/runs", .environment = {.experiment_id = id}}, files),
                  {"EXPERIMENT_ID: \"" + id + "\"", "OUTPUT_DIR"});
    ExpectRefused(ChooseOutputDir({.root = "/runs", .environment = {.job_name = id}}, files), {"JOB_NAME: "});
    EXPECT_EQ(files.Resume(), 0) << "nothing is made";
  }
}

TEST(OutputDirTest, TheFolderIsMadeAndNothingIsLeftInIt) {
  MemoryFileSystem files;
  ASSERT_TRUE(ChooseOutputDir({.root = "/runs", .environment = {.experiment_id = "18"}}, files).ok());
  const auto entries = files.ListDirectory("/runs/18").value();
  EXPECT_THAT(entries, IsEmpty());
}

TEST(OutputDirTest, ARootThatCanNotBeWrittenTo) {
  MemoryFileSystem files;
  files.SetReadOnly(true);
  ExpectRefused(ChooseOutputDir({.root = "/runs", .environment = {.experiment_id = "18"}}, files),
                {"/runs/18 (EXPERIMENT_ID below the output root /runs) can't be written to", "read-only file system",
                 "--model_dir", "--output_root"});
}

// Creating a folder that exists changes nothing, so only the trial file shows it.
TEST(OutputDirTest, AFolderThatIsThereAndCanNotBeWrittenTo) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.CreateDirectory("/kept").ok());
  files.SetReadOnly(true);
  ExpectRefused(ChooseOutputDir({.environment = {.output_dir = "/kept"}}, files), {"/kept (OUTPUT_DIR)"});
  ExpectRefused(ChooseOutputDir({.model_dir = "/kept"}, files), {"/kept (--model_dir or TF_CONFIG's model_dir)"});
}

}  // namespace
}  // namespace muster::output_dir_test
