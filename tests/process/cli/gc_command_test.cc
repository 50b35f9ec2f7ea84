// `muster gc` as users run it. muster/launch/project/garbage_test.cc tests what goes and what stays.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "muster/base/clock.h"
#include "muster/base/files/file_system.h"
#include "muster/base/testing/built_at.h"
#include "muster/launch/registry/home.h"
#include "muster/launch/registry/registry.h"
#include "tests/process/testing/experiments.h"

namespace muster::gc_command_test {
namespace {

using ::testing::HasSubstr;

class GcCommandTest : public ExperimentsTest {
 protected:
  // Adds code that no experiment uses, last used in 1970.
  void AddOldCode() {
    const std::string tree = home() + "/code/0123";
    std::filesystem::create_directories(tree + "/folder");
    const timespec then[2] = {{.tv_sec = 1, .tv_nsec = 0}, {.tv_sec = 1, .tv_nsec = 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, tree.c_str(), then, 0), 0);
  }
  bool HasOldCode() const { return std::filesystem::exists(home() + "/code/0123"); }
};

TEST_F(GcCommandTest, SaysWhatItRemoves) {
  AddOldCode();
  const Said dry = Muster({"gc", "--dry-run"});
  EXPECT_EQ(dry.exit_code, 0) << dry.err;
  EXPECT_THAT(dry.out, HasSubstr("would remove code/0123 (code, 0 bytes)\nWould free 0 bytes."));
  EXPECT_TRUE(HasOldCode());

  const Said json = Muster({"gc", "--json"});
  EXPECT_EQ(json.exit_code, 0) << json.err;
  const auto object = nlohmann::json::parse(json.out, nullptr, false);
  ASSERT_TRUE(object.is_object()) << json.out;
  EXPECT_EQ(json.out.find('\n'), json.out.size() - 1) << "one line";
  EXPECT_EQ(object["removed"], nlohmann::json::parse(R"([{"kind": "code", "path": "code/0123", "bytes": 0}])"));
  EXPECT_EQ(object["bytes"], 0);
  EXPECT_EQ(object["dry_run"], false);
  EXPECT_FALSE(HasOldCode());
  EXPECT_EQ(Muster({"gc"}).out, "Nothing to remove.\n");
}

TEST_F(GcCommandTest, ForgetsExperimentsOnlyWhenAsked) {
  Write("muster.yml", "project: toaster\ntrain:\n  run: echo kept > \"$OUTPUT_DIR/model\"\n");
  const Said train = Muster({"train"});
  ASSERT_EQ(train.exit_code, 0) << train.out << train.err;
  ASSERT_EQ(Read("experiments/1/output/model"), "kept\n");
  EXPECT_EQ(Muster({"gc"}).exit_code, 0);
  EXPECT_EQ(Muster({"gc", "--experiments-older-than", "0", "--keep", "1"}).exit_code, 0);
  EXPECT_EQ(Read("experiments/1/output/model"), "kept\n");
  const Said gc = Muster({"gc", "--experiments-older-than", "0"});
  EXPECT_EQ(gc.exit_code, 0) << gc.err;
  EXPECT_THAT(gc.out, HasSubstr("removed experiments/1 (experiment, "));
  EXPECT_EQ(Read("experiments/1/output/model"), "");
  EXPECT_EQ(Muster({"show", "1"}).exit_code, 2);
}

TEST_F(GcCommandTest, ForgetsAGridOfMoreRunsThanItMayHaveFilesOpenAtFirst) {
  constexpr int kRuns = 80;
  const auto opened = Home::Open(home(), PosixFileSystem()).value();
  const auto registry = Registry::Open(opened, RealClock()).value();
  const auto grid = registry
                        ->Create({.project = "toaster",
                                  .file_name = "muster.yml",
                                  .runs = std::vector<ParameterValues>(kRuns),
                                  .grid = true})
                        .value();
  for (int run = 0; run <= kRuns; ++run) {
    const ExperimentId id = {grid, run};
    ASSERT_TRUE(PosixFileSystem().CreateDirectory(opened.folder(id)).ok());
    auto record = registry->Run(id).value();
    record.state = RunState::kKilled;
    ASSERT_TRUE(registry->SetRun(record).ok());
  }
  Process gc({"/bin/sh", "-c", "ulimit -S -n 40 && exec \"$0\" gc --experiments-older-than 0", BinFolder() + "/muster"},
             {.environment = {{"MUSTER_HOME", home()}}});
  EXPECT_EQ(gc.Wait(), 0) << gc.err;
  EXPECT_THAT(gc.out, HasSubstr("removed experiments/1 ("));
}

TEST_F(GcCommandTest, WrongUsageIsOneLine) {
  for (const std::vector<std::string>& flags : std::vector<std::vector<std::string>>{
           {"--keep", "3"}, {"--older-than", "-1"}, {"--experiments-older-than", "soon"}, {"--all"}}) {
    std::vector<std::string> arguments = {"gc"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const Said said = Muster(arguments);
    EXPECT_EQ(said.exit_code, 2) << flags[0];
    EXPECT_THAT(said.err, HasSubstr("muster gc: ")) << flags[0];
    EXPECT_EQ(said.err.find('\n'), said.err.size() - 1) << said.err;
  }
}

}  // namespace
}  // namespace muster::gc_command_test
