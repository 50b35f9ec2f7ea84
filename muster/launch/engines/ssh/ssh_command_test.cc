#include "muster/launch/engines/ssh/ssh_command.h"

#include <gmock/gmock.h>
#include <signal.h>

#include "absl/strings/str_join.h"

namespace muster::ssh_command_test {
namespace {

using ::testing::HasSubstr;

const ExitStatus kSshsOwn = {.code = 255};

TEST(SshCommandTest, IsTheUsersSshThatAsksNothing) {
  EXPECT_EQ(
      absl::StrJoin(SshArguments({}, "me@h1", "exec true"), " "),
      "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=15 -o ServerAliveCountMax=3 -T -- me@h1 exec "
      "true");
  EXPECT_THAT(absl::StrJoin(SshArguments({.program = "/opt/ssh", .config = "/tmp/c"}, "h", "x"), " "),
              HasSubstr("/opt/ssh -F /tmp/c -o"));
}

struct Case {
  const char* errors;
  SshFailure failure;
  const char* explanation;
};

class SshFailureTest : public ::testing::TestWithParam<Case> {};

// What OpenSSH 9.2 writes.
TEST_P(SshFailureTest, IsNamedWithTheWayOut) {
  EXPECT_EQ(WhySshFailed(kSshsOwn, GetParam().errors), GetParam().failure);
  EXPECT_THAT(ExplainSshFailure(GetParam().failure, "h1", GetParam().errors), HasSubstr(GetParam().explanation));
}

INSTANTIATE_TEST_SUITE_P(
    All, SshFailureTest,
    ::testing::Values(
        Case{"ssh: Could not resolve hostname h1: Name or service not known\r\n", SshFailure::kUnknownName,
             "h1 has a name that can't be resolved"},
        Case{"ssh: connect to host h1 port 22: Connection refused\r\n", SshFailure::kUnreachable, "does its sshd run?"},
        Case{"ssh: connect to host h1 port 22: No route to host\r\n", SshFailure::kUnreachable, "can't be reached"},
        Case{"ssh: connect to host h1 port 22: Connection timed out\r\n", SshFailure::kUnreachable, "can't be reached"},
        Case{"No ED25519 host key is known for h1 and you have requested strict checking.\r\nHost key verification "
             "failed.\r\n",
             SshFailure::kUnknownKey, "(ssh h1)"},
        Case{"@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\r\nHost key verification failed.\r\n",
             SshFailure::kChangedKey, "ssh-keygen -R h1"},
        Case{"me@h1: Permission denied (publickey).\r\n", SshFailure::kDenied,
             "ssh-copy-id h1) and, if it has a passphrase, in your ssh-agent? (ssh: me@h1: Permission denied"},
        Case{"kex_exchange_identification: Connection closed by remote host\r\nConnection closed by 10.0.0.1 port "
             "22\r\n",
             SshFailure::kDropped, "MaxStartups"},
        Case{"kex_exchange_identification: read: Connection reset by peer\r\n", SshFailure::kDropped, "MaxStartups"},
        Case{"Connection timed out during banner exchange\r\n", SshFailure::kDropped, "MaxStartups"},
        // A jump host reaches the second one: its refusal counts, not what follows from it.
        Case{"channel 0: open failed: connect failed: Connection refused\r\nstdio forwarding "
             "failed\r\nkex_exchange_identification: Connection closed by remote host\r\n",
             SshFailure::kUnreachable, "can't be reached"},
        Case{"Connection to h1 closed by remote host.\r\n", SshFailure::kConnection, "the connection broke"},
        Case{"Bad configuration option: nosuch\r\n", SshFailure::kOther, "h1 can't be used by ssh (ssh: Bad conf"},
        Case{"", SshFailure::kOther, "h1 can't be used by ssh"}));

TEST(SshFailureTest, TheCommandsOwnEndIsNoFailureOfSsh) {
  EXPECT_EQ(WhySshFailed({.code = 1}, "Permission denied"), SshFailure::kNone);
  EXPECT_EQ(WhySshFailed({}, ""), SshFailure::kNone);
  EXPECT_EQ(WhySshFailed({.signal = SIGKILL}, ""), SshFailure::kOther);
}

TEST(SshFailureTest, ControlCharactersDoNotReachTheTerminal) {
  EXPECT_THAT(ExplainSshFailure(SshFailure::kOther, "h1", "a\x1b[2Jb"), HasSubstr("(ssh: a\\x1b[2Jb)"));
}

}  // namespace
}  // namespace muster::ssh_command_test
