#include "muster/launch/system/program_output.h"

#include <gtest/gtest.h>

#include <string>

namespace muster::program_output_test {
namespace {

constexpr absl::Duration kHang = absl::Minutes(1);

absl::StatusOr<ProgramOutput> Shell(const std::string& script, absl::Duration patience,
                                    const ProgramDialog& dialog = {}) {
  return RunToItsEnd({"sh", "-c", script}, {"PATH=/usr/bin:/bin"}, patience, dialog);
}

TEST(ProgramOutputTest, BothStreamsAndTheExitCodeAreThere) {
  const auto output = Shell("cat; echo wrong >&2; exit 3", kHang, {.input = "given"});
  ASSERT_TRUE(output.ok()) << output.status();
  EXPECT_EQ(output->out, "given");
  EXPECT_EQ(output->err, "wrong\n");
  EXPECT_EQ(output->status.code, 3);
}

TEST(ProgramOutputTest, MoreThanIsKeptIsDropped) {
  const auto output = Shell("head -c 3000000 /dev/zero", kHang, {.most_kept = 1000});
  ASSERT_TRUE(output.ok()) << output.status();
  EXPECT_EQ(output->out.size(), 1000U);
}

TEST(ProgramOutputTest, AllThatFitsIntoAPipeIsReadAfterTheEnd) {
  const auto output = Shell("head -c 60000 /dev/zero", kHang);
  ASSERT_TRUE(output.ok()) << output.status();
  EXPECT_EQ(output->out.size(), 60000U);
}

// Several write at once, so that the pipe is hardly ever empty.
TEST(ProgramOutputTest, OneThatPrintsWithoutEndHasItsPatience) {
  EXPECT_TRUE(absl::IsDeadlineExceeded(Shell("yes & yes & yes", absl::Milliseconds(100)).status()));
}

// The child ends when the pipe does.
TEST(ProgramOutputTest, AChildThatPrintsWithoutEndIsNotWaitedFor) {
  const auto output = Shell("yes & exit 5", kHang);
  ASSERT_TRUE(output.ok()) << output.status();
  EXPECT_EQ(output->status.code, 5);
}

}  // namespace
}  // namespace muster::program_output_test
