// The command is one file: a copy of it runs on any host of the same architecture whose glibc isn't older.
#include <gmock/gmock.h>
#include <gnu/libc-version.h>
#include <gtest/gtest.h>
#include <sys/utsname.h>

#include <cstdio>
#include <filesystem>

#include "muster/base/files/file_system.h"
#include "muster/base/testing/built_at.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/system/elf_needs.h"
#include "muster/launch/system/host_system.h"
#include "tests/process/testing/process.h"

namespace muster::one_file_test {
namespace {

HostSystem ThisHost() {
  utsname system = {};
  EXPECT_EQ(uname(&system), 0);
  return {.machine = system.machine, .glibc = ParseGlibcVersion(gnu_get_libc_version())};
}

TEST(OneFile, TheCommandNeedsOnlyTheCLibraryAndNoNewerOneThanItMust) {
  const auto file = PosixFileSystem().ReadFile(BinFolder() + "/muster");
  ASSERT_TRUE(file.ok()) << file.status();
  const auto needs = NeedsOfElf(*file);
  ASSERT_TRUE(needs.ok()) << needs.status();
  EXPECT_THAT(LibrariesBeyondGlibc(*needs), ::testing::IsEmpty());
  EXPECT_EQ(CheckRunsOn("this", ThisHost(), *needs), absl::OkStatus());
  ASSERT_TRUE(needs->least_glibc.has_value());
  // gcc's unwinder needs 2.35. Newer glibcs give functions of old names new versions, which a build there then needs.
  if (ThisHost().glibc <= GlibcVersion{2, 36}) {
    EXPECT_LE(*needs->least_glibc, (GlibcVersion{2, 35}));
  }
  std::printf("muster needs %s, glibc %d.%d or newer\n", needs->machine.c_str(), needs->least_glibc->major,
              needs->least_glibc->minor);
}

// All that the Dockerfile's image has beside its base (tools/check_docker.py), and what each host by ssh gets.
TEST(OneFile, TheCommandWithoutItsSymbolsIsBelow20MB) {
  const ScratchFolder scratch;
  Process strip({"/usr/bin/env", "strip", "-o", scratch / "muster", BinFolder() + "/muster"});
  ASSERT_EQ(strip.Wait(), 0) << strip.err;
  EXPECT_LT(std::filesystem::file_size(scratch / "muster"), 20'000'000U);
}

}  // namespace
}  // namespace muster::one_file_test
