// `muster init` and `muster schema`: what they write, and what they refuse.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "muster/base/files/file_system.h"
#include "muster/base/testing/built_at.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/spec/experiment_file.h"
#include "muster/launch/spec/schema.h"
#include "tests/process/testing/muster_command.h"
#include "tests/process/testing/process.h"

namespace muster::init_command_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr, ::testing::IsEmpty;

class InitCommand : public ::testing::Test {
 protected:
  InitCommand() { EXPECT_TRUE(PosixFileSystem().CreateDirectory(folder_).ok()); }

  std::string Out(const std::vector<std::string>& words) const { return MusterOut(words, {.directory = folder_}); }
  std::string Mistake(const std::vector<std::string>& words, int exit_code = 2) const {
    return MusterMistake(words, {.directory = folder_}, exit_code);
  }
  void Write(const std::string& name, const std::string& text) const { root_.Write("tea timer/" + name, text); }
  std::string Written() const { return root_.Read("tea timer/muster.yml"); }

  const ScratchFolder root_;
  const std::string folder_ = root_ / "tea timer";
};

TEST_F(InitCommand, WritesAFileThatIsValid) {
  EXPECT_EQ(Out({"init"}), "wrote muster.yml for project tea-timer; edit it, then `muster train`\n");
  const auto file = ParseExperimentFile(Written(), "muster.yml").value();
  EXPECT_EQ(file.project, "tea-timer");
  EXPECT_EQ(file.framework, Framework::kAny);
}

TEST_F(InitCommand, WritesOneForAFramework) {
  const auto said = MusterJson({"init", "--framework", "tensorflow"}, {.directory = folder_});
  ASSERT_TRUE(said.is_object()) << said;
  EXPECT_EQ(said["project"], "tea-timer");
  EXPECT_EQ(said["framework"], "tensorflow");
  EXPECT_EQ(said["file"], folder_ + "/muster.yml");
  const auto file = ParseExperimentFile(Written(), "muster.yml").value();
  EXPECT_TRUE(file.distributed.has_value());
}

TEST_F(InitCommand, LeavesWhatIsThere) {
  Write("muster.yml", "mine\n");
  EXPECT_THAT(Mistake({"init"}),
              AllOf(HasSubstr("muster init: "), HasSubstr("/muster.yml exists"), HasSubstr("--force")));
  EXPECT_EQ(Written(), "mine\n");
  Out({"init", "--force"});
  EXPECT_THAT(Written(), HasSubstr("project: tea-timer"));
}

TEST_F(InitCommand, AFileOfRisemlIsOneToo) {
  Write("riseml.yml", "project: mine\n");
  EXPECT_THAT(Mistake({"init"}), HasSubstr("/riseml.yml exists"));
  EXPECT_THAT(Written(), IsEmpty());
}

TEST_F(InitCommand, KnowsItsFrameworks) {
  EXPECT_EQ(Mistake({"init", "--framework", "tensorflwo"}),
            "muster init: --framework: unknown \"tensorflwo\" (nearest: tensorflow); accepted: muster, "
            "tensorflow, pytorch, any\n");
  EXPECT_THAT(Written(), IsEmpty());
}

TEST_F(InitCommand, AFolderThatTakesNoFileIsSaid) {
  ASSERT_TRUE(PosixFileSystem().CreateDirectory(folder_ + "/muster.yml/inside").ok());
  EXPECT_THAT(Mistake({"init", "--force"}, 1), HasSubstr("muster.yml"));
}

TEST_F(InitCommand, TheSchemaIsTheLibrarys) {
  EXPECT_EQ(Out({"schema"}), ExperimentFileJsonSchema());
  EXPECT_EQ(Out({"schema", "--json"}), ExperimentFileJsonSchema());
  Mistake({"schema", "extra"});
}

TEST_F(InitCommand, WhatCannotBeWrittenOutIsNoSuccess) {
  Process process({"/bin/sh", "-c", "exec \"$0\" schema > /dev/full", BinFolder() + "/muster"});
  EXPECT_EQ(process.Wait(), 1);
  EXPECT_THAT(process.err, HasSubstr("muster: could not write all of the output"));
}

}  // namespace
}  // namespace muster::init_command_test
