// `muster init` and `muster schema`: what they write, and what they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "muster/base/bytes.h"
#include "muster/base/files/file_system.h"
#include "muster/base/testing/built_at.h"
#include "muster/launch/spec/experiment_file.h"
#include "muster/launch/spec/schema.h"
#include "tests/process/testing/process.h"

namespace muster::init_command_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class InitCommand : public ::testing::Test {
 protected:
  InitCommand() {
    std::string folder = ::testing::TempDir() + "muster_init_XXXXXX";
    root_ = mkdtemp(folder.data());
    folder_ = root_ + "/ai toaster";
    EXPECT_TRUE(PosixFileSystem().CreateDirectory(folder_).ok());
  }
  ~InitCommand() override { EXPECT_TRUE(PosixFileSystem().RemoveTree(root_).ok()); }

  // Runs it to its end; its output is then in out_ and err_.
  int Muster(std::vector<std::string> words) {
    words.insert(words.begin(), BinFolder() + "/muster");
    Process process(words, {.directory = folder_});
    const int exit_code = process.Wait();
    out_ = process.out;
    err_ = process.err;
    return exit_code;
  }
  void Write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(WriteFileAtomically(PosixFileSystem(), folder_ + "/" + name, AsBytes(text.data(), text.size())).ok());
  }
  std::string Written() { return PosixFileSystem().ReadFile(folder_ + "/muster.yml").value_or(""); }

  std::string root_, folder_, out_, err_;
};

TEST_F(InitCommand, WritesAFileThatIsValid) {
  EXPECT_EQ(Muster({"init"}), 0) << err_;
  EXPECT_EQ(out_, "wrote muster.yml for project ai-toaster; edit it, then `muster train`\n");
  EXPECT_THAT(err_, IsEmpty());
  const auto file = ParseExperimentFile(Written(), "muster.yml").value();
  EXPECT_EQ(file.project, "ai-toaster");
  EXPECT_EQ(file.framework, Framework::kAny);
}

TEST_F(InitCommand, WritesOneForAFramework) {
  EXPECT_EQ(Muster({"init", "--framework", "tensorflow", "--json"}), 0) << err_;
  EXPECT_THAT(err_, IsEmpty());
  const auto said = nlohmann::json::parse(out_, nullptr, false);
  ASSERT_TRUE(said.is_object()) << out_;
  EXPECT_EQ(said["project"], "ai-toaster");
  EXPECT_EQ(said["framework"], "tensorflow");
  EXPECT_EQ(said["file"], folder_ + "/muster.yml");
  const auto file = ParseExperimentFile(Written(), "muster.yml").value();
  EXPECT_TRUE(file.distributed.has_value());
}

TEST_F(InitCommand, LeavesWhatIsThere) {
  Write("muster.yml", "mine\n");
  EXPECT_EQ(Muster({"init"}), 2);
  EXPECT_THAT(out_, IsEmpty());
  EXPECT_THAT(err_, AllOf(HasSubstr("muster init: "), HasSubstr("/muster.yml exists"), HasSubstr("--force")));
  EXPECT_EQ(Written(), "mine\n");
  EXPECT_EQ(Muster({"init", "--force"}), 0) << err_;
  EXPECT_THAT(Written(), HasSubstr("project: ai-toaster"));
}

TEST_F(InitCommand, AFileOfRisemlIsOneToo) {
  Write("riseml.yml", "project: mine\n");
  EXPECT_EQ(Muster({"init"}), 2);
  EXPECT_THAT(err_, HasSubstr("/riseml.yml exists"));
  EXPECT_THAT(Written(), IsEmpty());
}

TEST_F(InitCommand, KnowsItsFrameworks) {
  EXPECT_EQ(Muster({"init", "--framework", "tensorflwo"}), 2);
  EXPECT_EQ(err_,
            "muster init: --framework: unknown \"tensorflwo\" (nearest: tensorflow); accepted: muster, "
            "tensorflow, pytorch, any\n");
  EXPECT_THAT(Written(), IsEmpty());
}

TEST_F(InitCommand, AFolderThatTakesNoFileIsSaid) {
  ASSERT_TRUE(PosixFileSystem().CreateDirectory(folder_ + "/muster.yml/inside").ok());
  EXPECT_EQ(Muster({"init", "--force"}), 1);
  EXPECT_THAT(err_, HasSubstr("muster.yml"));
}

TEST_F(InitCommand, TheSchemaIsTheLibrarys) {
  EXPECT_EQ(Muster({"schema"}), 0) << err_;
  EXPECT_EQ(out_, ExperimentFileJsonSchema());
  EXPECT_EQ(Muster({"schema", "--json"}), 0) << err_;
  EXPECT_EQ(out_, ExperimentFileJsonSchema());
  EXPECT_EQ(Muster({"schema", "extra"}), 2);
  EXPECT_THAT(out_, IsEmpty());
}

TEST_F(InitCommand, WhatCannotBeWrittenOutIsNoSuccess) {
  Process process({"/bin/sh", "-c", "exec \"$0\" schema > /dev/full", BinFolder() + "/muster"});
  EXPECT_EQ(process.Wait(), 1);
  EXPECT_THAT(process.err, HasSubstr("muster: could not write all of the output"));
}

}  // namespace
}  // namespace muster::init_command_test
