#include "muster/launch/engines/contact/first_contact.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/system/piped_program.h"
#include "muster/launch/testing/piped_program_text.h"

namespace muster::first_contact_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr, ::testing::Not, ::testing::StartsWith;
using State = FirstContact::State;

TEST(FirstContactTest, WhatFollowsTheStartIsTheAgents) {
  FirstContact contact;
  EXPECT_EQ(contact.Take("Welcome to h1\nmuster-start\nFRAME\n"), 27U);
  EXPECT_EQ(contact.state(), State::kStarted);
  EXPECT_EQ(contact.banner(), "Welcome to h1\n");
}

TEST(FirstContactTest, PiecesOfAnySizeMeanTheSame) {
  const std::string all = "hello\r\n\nmuster-send Linux x86_64 glibc_2.36\r\nmuster-start\n";
  FirstContact contact;
  for (const char byte : all) EXPECT_EQ(contact.Take({&byte, 1}), 1U);
  EXPECT_EQ(contact.state(), State::kStarted);
  EXPECT_EQ(contact.system().machine, "x86_64");
  EXPECT_EQ(contact.system().glibc, GlibcOfHost("glibc 2.36"));
  EXPECT_TRUE(contact.system().glibc.has_value());
  EXPECT_EQ(contact.banner(), "hello\n");
}

TEST(FirstContactTest, AHostWithoutGlibcSaysNothingOfIt) {
  FirstContact contact;
  contact.Take("muster-send Linux aarch64 \n");
  EXPECT_EQ(contact.state(), State::kSend);
  EXPECT_EQ(contact.system().machine, "aarch64");
  EXPECT_EQ(contact.system().glibc, std::nullopt);
}

TEST(FirstContactTest, AnotherSystemsMachineIsNamedWithIt) {
  FirstContact contact;
  contact.Take("muster-send Darwin x86_64\n");
  EXPECT_EQ(contact.system().machine, "x86_64 (Darwin)");
}

TEST(FirstContactTest, AHostThatCannotKeepTheFileSaysSo) {
  FirstContact contact;
  contact.Take("muster-send Linux x86_64 glibc_2.36\nmuster-failed\n");
  EXPECT_EQ(contact.state(), State::kFailed);
}

TEST(FirstContactTest, EndlessTalkIsNoMuster) {
  FirstContact contact;
  const std::string line(1000, 'x');
  for (int i = 0; i < 100; ++i) contact.Take(line + "\n");
  EXPECT_EQ(contact.state(), State::kNoMuster);
  FirstContact without_lines;
  for (int i = 0; i < 100; ++i) without_lines.Take(line);
  EXPECT_EQ(without_lines.state(), State::kNoMuster);
}

TEST(MusterFileTest, IsNamedByItsContent) {
  const MusterFile file = MusterFileOf("abc");
  EXPECT_EQ(file.hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad") << "SHA-256 of FIPS 180-2";
  EXPECT_EQ(file.bytes, 3U);
  EXPECT_NE(MusterFileOf("abd").hash, file.hash);
}

// Runs the command as sshd does, with a login shell of the user, in a home of its own.
class FirstContactCommandTest : public ::testing::TestWithParam<const char*> {
 protected:
  ProgramText Say(const std::string& input) const {
    return TextOf({GetParam(), "-c", FirstContactCommand()}, input, {kUsualPath, "HOME=" + folder_.path()});
  }
  std::string FileOnHost() const { return folder_.path() + "/.cache/muster/bin/" + muster_.hash + "/muster"; }

  ScratchFolder folder_;
  // Stands for muster: shows with which arguments it is run, and its stdin.
  const std::string content_ = "#!/bin/sh\necho \"$*\"\ncat\n";
  const MusterFile muster_ = {.hash = "0123abcd", .bytes = content_.size()};
};

TEST_P(FirstContactCommandTest, CopiesTheFileOnceAndStartsIt) {
  const ProgramText first = Say(FirstContactLine(muster_, "job-1", absl::Seconds(45)) + content_ + "frames");
  EXPECT_THAT(first.output, HasSubstr("muster-send Linux "));
  EXPECT_THAT(first.output, HasSubstr("muster-start\nagent --attach job-1 --grace 45\nframes")) << first.errors;
  struct stat file;
  ASSERT_EQ(stat(FileOnHost().c_str(), &file), 0);
  EXPECT_EQ(file.st_mode & 0777, 0700U);

  const ProgramText second = Say(FirstContactLine(muster_, "job-2", absl::Seconds(45)) + "frames");
  EXPECT_EQ(second.output, "muster-start\nagent --attach job-2 --grace 45\nframes") << second.errors;
}

// Both have one length.
TEST_P(FirstContactCommandTest, AnotherBuildIsCopiedBesideTheFirst) {
  const std::string one = "#!/bin/sh\necho one\n", two = "#!/bin/sh\necho two\n";
  const auto start = [&](const std::string& build, const std::string& sent) {
    return Say(FirstContactLine(MusterFileOf(build), "job-1", absl::Seconds(45)) + sent).output;
  };
  EXPECT_THAT(start(one, one), AllOf(StartsWith("muster-send "), HasSubstr("muster-start\none\n")));
  EXPECT_THAT(start(two, two), AllOf(StartsWith("muster-send "), HasSubstr("muster-start\ntwo\n")));
  EXPECT_EQ(start(one, ""), "muster-start\none\n");
  EXPECT_EQ(start(two, ""), "muster-start\ntwo\n");
}

TEST_P(FirstContactCommandTest, TasksGetTheUsersUmask) {
  const std::string shows_umask = "#!/bin/sh\numask\n";
  const MusterFile muster = {.hash = "4567cdef", .bytes = shows_umask.size()};
  const mode_t before = umask(027);
  const ProgramText text = Say(FirstContactLine(muster, "job-1", absl::Seconds(45)) + shows_umask);
  umask(before);
  EXPECT_THAT(text.output, HasSubstr("muster-start\n0027\n")) << text.errors;
}

TEST_P(FirstContactCommandTest, HalfAFileIsNotKept) {
  const ProgramText text = Say(FirstContactLine(muster_, "job-1", absl::Seconds(45)) + content_.substr(0, 5));
  EXPECT_THAT(text.output, HasSubstr("muster-failed\n"));
  EXPECT_THAT(text.output, Not(HasSubstr("muster-start")));
  EXPECT_EQ(text.status.code, 4);
  EXPECT_THAT(*PosixFileSystem().ListDirectory(folder_.path() + "/.cache/muster/bin/" + muster_.hash),
              ::testing::IsEmpty());
}

TEST_P(FirstContactCommandTest, WhatPreventsItIsOnStderr) {
  std::ofstream(folder_.path() + "/.cache") << "a file, no folder";
  const ProgramText text = Say(FirstContactLine(muster_, "job-1", absl::Seconds(45)) + content_);
  EXPECT_THAT(text.output, HasSubstr("muster-failed\n"));
  EXPECT_THAT(text.errors, HasSubstr(".cache"));
}

TEST_P(FirstContactCommandTest, AFileThatACrashHasLeftIsReplaced) {
  std::filesystem::create_directories(folder_.path() + "/.cache/muster/bin/" + muster_.hash);
  std::ofstream(FileOnHost()) << content_.substr(0, 12);
  ASSERT_EQ(chmod(FileOnHost().c_str(), 0700), 0);
  const ProgramText text = Say(FirstContactLine(muster_, "job-1", absl::Seconds(45)) + content_ + "frames");
  EXPECT_THAT(text.output, HasSubstr("muster-start\nagent --attach job-1 --grace 45\nframes")) << text.errors;
}

// Its content is not looked at: what others may have put there isn't run.
TEST_P(FirstContactCommandTest, NothingIsRunThatOthersMayHavePutThere) {
  const std::string bin = folder_.path() + "/.cache/muster/bin";
  Say(FirstContactLine(muster_, "job-1", absl::Seconds(45)) + content_);
  const auto refused = [&](const std::string& path) {
    const ProgramText text = Say(FirstContactLine(muster_, "job-1", absl::Seconds(45)));
    EXPECT_EQ(text.output, "muster-failed\n") << path;
    EXPECT_THAT(text.errors, HasSubstr(path + " belongs to somebody else, or others may write there"));
    const ProgramText later = TextOf({GetParam(), "-c", OwnCommandThere(muster_, {"SHOWN", "h1"}, {"logs"})}, "",
                                     {kUsualPath, "HOME=" + folder_.path()});
    EXPECT_EQ(later.status.code, 1);
    EXPECT_THAT(later.errors, HasSubstr(path + " belongs to somebody else"));
  };
  for (const std::string& path : {folder_.path() + "/.cache/muster", bin, bin + "/" + muster_.hash, FileOnHost()}) {
    for (const mode_t mode : {0720, 0702}) {
      ASSERT_EQ(chmod(path.c_str(), mode), 0);
      refused(path);
    }
    ASSERT_EQ(chmod(path.c_str(), 0700), 0);
    if (geteuid() != 0) continue;
    ASSERT_EQ(chown(path.c_str(), 12345, 12345), 0);
    refused(path);
    ASSERT_EQ(chown(path.c_str(), 0, 0), 0);
  }
  EXPECT_THAT(Say(FirstContactLine(muster_, "job-1", absl::Seconds(45))).output, HasSubstr("muster-start"));
}

TEST_P(FirstContactCommandTest, LaterCommandsRunTheSameFile) {
  const auto run = [this] {
    return TextOf({GetParam(), "-c", OwnCommandThere(muster_, {"SHOWN", "it's h1"}, {"logs", "4", "--a=b c", "it's"})},
                  "", {kUsualPath, "HOME=" + folder_.path()});
  };
  EXPECT_EQ(run().status.code, kNoMusterThere);
  std::filesystem::create_directories(folder_.path() + "/.cache/muster/bin/" + muster_.hash);
  std::ofstream(FileOnHost()) << "#!/bin/sh\necho \"$SHOWN\"\nfor word; do echo \"<$word>\"; done\n";
  ASSERT_EQ(chmod(FileOnHost().c_str(), 0700), 0);
  EXPECT_EQ(run().output, "it's h1\n<logs>\n<4>\n<--a=b c>\n<it's>\n") << run().errors;
}

INSTANTIATE_TEST_SUITE_P(Shells, FirstContactCommandTest, ::testing::Values("sh", "bash", "zsh", "fish"));

}  // namespace
}  // namespace muster::first_contact_test
