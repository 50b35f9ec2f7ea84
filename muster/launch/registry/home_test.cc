#include "muster/launch/registry/home.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "muster/base/files/file_system.h"
#include "muster/base/files/memory_file_system.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/base/wrong_configuration.h"

namespace muster::home_test {
namespace {

using ::testing::HasSubstr, ::testing::IsEmpty;

TEST(Home, IsMadeAndLeftEmpty) {
  MemoryFileSystem files;
  const auto home = Home::Open("/data/muster", files).value();
  EXPECT_EQ(home.path(), "/data/muster");
  const auto names = files.ListDirectory("/data/muster").value();
  EXPECT_THAT(names, IsEmpty());
  EXPECT_TRUE(Home::Open("/data/muster", files).ok());  // the folder exists
}

TEST(Home, LiesWhereTheLayoutSays) {
  const Home home("/h");
  const ExperimentId own{4, 0}, run{4, 3};
  EXPECT_EQ(home.database(), "/h/index.db");
  EXPECT_EQ(home.former_database(), "/h/registry.db");
  EXPECT_EQ(home.open_marker(4), "/h/open/4");
  EXPECT_EQ(home.experiment_file(4), "/h/experiments/4/experiment.json");
  EXPECT_EQ(home.records(run), "/h/experiments/4/runs/3/records");
  EXPECT_EQ(home.state(own), "/h/experiments/4/state.json");
  EXPECT_EQ(home.requests(own), "/h/experiments/4/requests");
  EXPECT_EQ(home.trees(), "/h/code");
  EXPECT_EQ(home.builds(), "/h/builds");
  EXPECT_EQ(home.environments(), "/h/environments");
  EXPECT_EQ(home.folder(own), "/h/experiments/4");
  EXPECT_EQ(home.folder(run), "/h/experiments/4/runs/3");
  EXPECT_EQ(home.work(own), "/h/experiments/4/work");
  EXPECT_EQ(home.logs(run), "/h/experiments/4/runs/3/logs");
  EXPECT_EQ(home.output(run), "/h/experiments/4/runs/3/output");
  EXPECT_EQ(home.lock(own), "/h/experiments/4/lock");
  EXPECT_EQ(home.supervisor_log(run), "/h/experiments/4/runs/3/supervisor.log");
}

TEST(Home, IsAnAbsolutePath) {
  MemoryFileSystem files;
  const auto home = Home::Open("some/../folder", files).value();
  EXPECT_EQ(home.path().front(), '/');
  EXPECT_EQ(home.path().find(".."), std::string::npos);
  EXPECT_TRUE(files.Exists(home.path()));
}

TEST(Home, WhatCannotBeWrittenIsAWrongConfiguration) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.CreateDirectory("/there").ok());
  files.SetReadOnly(true);
  for (const char* path : {"/there", "/not_there"}) {
    const auto home = Home::Open(path, files);
    EXPECT_TRUE(IsWrongConfiguration(home.status())) << home.status();
    EXPECT_THAT(std::string(home.status().message()), HasSubstr(path));
    EXPECT_THAT(std::string(home.status().message()), HasSubstr("set MUSTER_HOME to another folder"));
  }
  const auto nowhere = Home::Open("", files);
  EXPECT_TRUE(IsWrongConfiguration(nowhere.status())) << nowhere.status();
  EXPECT_THAT(std::string(nowhere.status().message()), HasSubstr("MUSTER_HOME"));
}

TEST(Home, WhoOnlyReadsNeedsNoMoreThanTheRegistry) {
  MemoryFileSystem files;
  ASSERT_TRUE(files.CreateDirectory("/there").ok());
  ASSERT_TRUE(WriteFileAtomically(files, "/there/index.db", {}).ok());
  files.SetReadOnly(true);
  const auto home = Home::OpenToRead("/there/./", files).value();
  EXPECT_EQ(home.database(), "/there/index.db");
  EXPECT_TRUE(IsWrongConfiguration(Home::OpenToRead("/not_there", files).status()));
  EXPECT_TRUE(IsWrongConfiguration(Home::OpenToRead("", files).status()));
}

TEST(Home, ThatIsMadeIsItsOwnersAlone) {
  const ScratchFolder scratch;
  ASSERT_TRUE(Home::Open(scratch / "new", PosixFileSystem()).ok());
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(scratch / "new").permissions(), perms::owner_all);
  std::filesystem::permissions(scratch / "new", perms::owner_all | perms::group_read);
  ASSERT_TRUE(Home::Open(scratch / "new", PosixFileSystem()).ok());
  EXPECT_EQ(std::filesystem::status(scratch / "new").permissions(), perms::owner_all | perms::group_read)
      << "one that is there keeps its rights";
}

TEST(Home, InWhichOthersMayWriteIsRefused) {
  const ScratchFolder scratch;
  using std::filesystem::perms;
  for (const perms open : {perms::group_write, perms::others_write}) {
    std::filesystem::permissions(scratch.path(), perms::owner_all | open);
    const auto home = Home::Open(scratch.path(), PosixFileSystem());
    EXPECT_TRUE(IsWrongConfiguration(home.status())) << home.status();
    EXPECT_THAT(std::string(home.status().message()), HasSubstr("chmod go-w " + scratch.path()));
  }
}

// An older muster made them so in a folder that was open to others.
TEST(Home, WhatOthersCouldReadInItIsTakenFromThem) {
  const ScratchFolder scratch;
  using std::filesystem::perms;
  const Home home(scratch / "home");
  for (const bool to_read : {false, true}) {
    for (const std::string& folder : {home.experiments(), home.trees(), home.builds()}) {
      std::filesystem::create_directories(folder);
      std::filesystem::permissions(folder, perms::owner_all | perms::group_read | perms::others_exec);
    }
    for (const char* name :
         {"index.db", "index.db-wal", "index.db-shm", "registry.db", "registry.db-wal", "registry.db-shm"}) {
      std::ofstream(JoinPath(home.path(), name)).flush();
      std::filesystem::permissions(JoinPath(home.path(), name),
                                   perms::owner_read | perms::owner_write | perms::group_read | perms::others_read);
    }
    ASSERT_TRUE((to_read ? Home::OpenToRead : Home::Open)(home.path(), PosixFileSystem()).ok());
    for (const auto& entry : std::filesystem::directory_iterator(home.path()))
      EXPECT_EQ(entry.status().permissions() & (perms::group_all | perms::others_all), perms::none) << entry.path();
    EXPECT_EQ(std::filesystem::status(home.trees()).permissions(), perms::owner_all);
  }
}

}  // namespace
}  // namespace muster::home_test
