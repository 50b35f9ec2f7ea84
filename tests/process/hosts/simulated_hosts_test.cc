// The hosts that tests have on this machine: that they differ in what hosts differ in, reach each other, break as they
// are told to, and leave nothing behind.
#include "tests/process/testing/simulated_hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/system/pid_fd.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/muster_command.h"

namespace muster::simulated_hosts_test {
namespace {

using ::testing::ElementsAre, ::testing::Field, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::Not,
    ::testing::StartsWith;

// Where the continuous build runs, nothing is skipped in silence.
TEST(NoTestBecauseTest, IsAFailureWhereCIIsSet) {
  const char* before = std::getenv("CI");
  const std::string own = before == nullptr ? "" : before;
  setenv("CI", "true", 1);
  EXPECT_NONFATAL_FAILURE(NoTestBecause("no namespaces"), "no namespaces");
  unsetenv("CI");
  EXPECT_EQ(NoTestBecause("no namespaces"), "no namespaces");
  if (before != nullptr) setenv("CI", own.c_str(), 1);
}

class SimulatedHostsTest : public ::testing::Test {
 protected:
  static void TearDownTestSuite() { up.reset(); }
  void SetUp() override {
    if (const std::string why = SimulatedHosts::WhyNot(); !why.empty()) GTEST_SKIP() << why;
    if (!up) up = std::make_unique<SimulatedHosts>(2);
  }

  static SimulatedHosts& hosts() { return *up; }
  // Runs words to their end.
  static Said Do(const std::string& host, const std::vector<std::string>& words) {
    Process process(hosts().On(host, words));
    const int exit_code = process.Wait();
    return {exit_code, process.out, process.err};
  }
  // The same by ssh from h0. `command` is for the login shell.
  static Said BySsh(const std::string& host, const std::string& command) {
    return Do("h0",
              {"ssh", "-F", hosts().ssh_config(), "-o", "BatchMode=yes", "-o", "ConnectTimeout=1", host, command});
  }
  // What `from` hears of the sshd of `to` within a second, or as long as it takes.
  static void ExpectSilence(const std::string& from, const std::string& to) {
    EXPECT_EQ(Do(from, Joined({"timeout", "1"}, Greet(to))).out, "") << from << " and " << to;
  }
  static void ExpectReaches(const std::string& from, const std::string& to) {
    EXPECT_THAT(Do(from, Greet(to)).out, StartsWith("SSH-2.0")) << from << " and " << to;
  }

 private:
  // Tries again: that a neighbour didn't answer while it was cut may be found out once it isn't any more.
  static std::vector<std::string> Greet(const std::string& to) {
    return {"bash", "-c",
            "until (exec 3<>/dev/tcp/" + SimulatedHosts::AddressOf(to) +
                "/22 && read -r line <&3 && echo \"$line\") 2>/dev/null; do :; done"};
  }

  static inline std::unique_ptr<SimulatedHosts> up;
};

TEST_F(SimulatedHostsTest, SshLogsInToAHost) {
  for (const std::string& host : hosts().names()) {
    const Said said = BySsh(host, "hostname; pwd; id -un");
    EXPECT_EQ(said.exit_code, 0) << said.err;
    EXPECT_EQ(said.out, host + "\n" + SimulatedHosts::home() + "\nroot\n");
    EXPECT_EQ(said.err, "");
  }
}

TEST_F(SimulatedHostsTest, AHostHasItsOwnFoldersProcessesAndNames) {
  for (const std::string folder : {"/tmp", "/dev/shm", "/run/home", "/run/user"}) {
    EXPECT_EQ(BySsh("h1", "echo one >" + folder + "/of_h1").exit_code, 0);
    EXPECT_EQ(Do("h1", {"cat", folder + "/of_h1"}).out, "one\n");
    EXPECT_NE(Do("h2", {"cat", folder + "/of_h1"}).exit_code, 0) << folder;
    EXPECT_NE(access((folder + "/of_h1").c_str(), F_OK), 0) << folder;
  }
  EXPECT_EQ(BySsh("h1", "echo one >" + hosts().shared() + "/by_h1").exit_code, 0);
  EXPECT_EQ(Do("h2", {"cat", hosts().shared() + "/by_h1"}).out, "one\n");
  EXPECT_THAT(Do("h1", {"cat", "/proc/1/cmdline"}).out, HasSubstr("sshd"));
  EXPECT_EQ(Do("h1", {"getent", "ahostsv4", "h2"}).out.substr(0, 11), "10.77.0.12 ");
  EXPECT_EQ(access(SimulatedHosts::home().c_str(), F_OK), -1);
  const std::string boot_id = "/proc/sys/kernel/random/boot_id";
  EXPECT_NE(Do("h1", {"cat", boot_id}).out, Do("h2", {"cat", boot_id}).out);
}

TEST_F(SimulatedHostsTest, FramesVanishOnlyWhileAHostIsCut) {
  ExpectReaches("h1", "h2");
  hosts().Cut("h1");
  ExpectSilence("h0", "h1");
  ExpectSilence("h1", "h2");
  ExpectReaches("h0", "h2");
  hosts().Heal("h1");
  ExpectReaches("h0", "h1");
  hosts().Cut("h0");
  ExpectSilence("h0", "h2");
  ExpectReaches("h1", "h2");
  hosts().Heal("h0");
  ExpectReaches("h0", "h2");
}

TEST_F(SimulatedHostsTest, TwoHostsAreCutFromEachOtherAlone) {
  hosts().CutFrom("h1", {"h2"});
  ExpectSilence("h1", "h2");
  ExpectSilence("h2", "h1");
  ExpectReaches("h0", "h1");
  ExpectReaches("h0", "h2");
  hosts().HealFrom("h1", {"h2"});
  ExpectReaches("h1", "h2");
  ExpectReaches("h2", "h1");
}

TEST_F(SimulatedHostsTest, AConnectionEndsWithItsSshAndWhatItStartedIsSeen) {
  Process ssh(hosts().On("h0", {"ssh", "-F", hosts().ssh_config(), "h1", "echo begun; exec sleep 1000"}));
  ssh.WaitForOut("begun");
  EXPECT_THAT(hosts().ProcessesOf("h1"), ElementsAre(Field(&SimulatedHosts::Running::words, HasSubstr("sleep 1000"))));
  EXPECT_THAT(hosts().ProcessesOf("h2"), IsEmpty());
  const pid_t sleeping = hosts().ProcessesOf("h1").at(0).pid;
  hosts().CutSsh("h1");
  EXPECT_EQ(ssh.Wait(), 255) << ssh.err;
  EXPECT_EQ(kill(sleeping, SIGKILL), 0) << "it outlives its session";
  hosts().AwaitNothingOn("h1");
  EXPECT_EQ(BySsh("h1", "hostname").out, "h1\n");
}

TEST_F(SimulatedHostsTest, AHostThatCrashesIsSilentAndComesBackEmpty) {
  const std::string boot_id = "cat /proc/sys/kernel/random/boot_id";
  const std::string before = BySsh("h2", "touch /tmp/of_h2; " + boot_id).out;
  Process ssh(hosts().On("h0", {"ssh", "-F", hosts().ssh_config(), "-o", "ServerAliveInterval=1", "-o",
                                "ServerAliveCountMax=1", "h2", "echo begun; exec sleep 1000"}));
  ssh.WaitForOut("begun");
  const int sleeping = OpenPidFd(hosts().ProcessesOf("h2").at(0).pid);
  hosts().Crash("h2");
  pollfd end = {sleeping, POLLIN, 0};
  EXPECT_EQ(poll(&end, 1, 0), 1) << "everything is gone at once";
  close(sleeping);
  EXPECT_EQ(ssh.Wait(), 255);
  EXPECT_THAT(ssh.err, HasSubstr("not responding")) << "no connection is closed";
  ExpectSilence("h1", "h2");
  hosts().Restart("h2");
  ExpectReaches("h1", "h2");
  const Said after = BySsh("h2", "ls /tmp; " + boot_id);
  EXPECT_THAT(after.out, Not(HasSubstr("of_h2")));
  EXPECT_NE(after.out, before);
}

// Two at once don't disturb each other.
TEST_F(SimulatedHostsTest, OthersHaveTheSameNamesAndAddressesAndEndWithTheirTest) {
  const ScratchFolder scratch;
  int pids[2];
  ASSERT_EQ(pipe(pids), 0);
  const pid_t other = fork();
  if (other == 0) {
    setenv("TEST_TMPDIR", (scratch / "").c_str(), 1);
    SimulatedHosts others(1);
    Process program(others.On("h1", {"sleep", "1000"}));
    std::vector<SimulatedHosts::Running> running;
    while (running.empty() || !running[0].words.starts_with("sleep")) running = others.ProcessesOf("h1");
    if (write(pids[1], &running[0].pid, sizeof(pid_t)) != sizeof(pid_t)) _exit(1);
    for (;;) pause();
  }
  pid_t sleeping = 0;
  EXPECT_EQ(read(pids[0], &sleeping, sizeof sleeping), static_cast<ssize_t>(sizeof sleeping));
  EXPECT_EQ(BySsh("h1", "hostname").out, "h1\n");
  EXPECT_THAT(hosts().ProcessesOf("h1"), IsEmpty());
  pollfd end = {OpenPidFd(sleeping), POLLIN, 0};
  ASSERT_GE(end.fd, 0);
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
  EXPECT_EQ(poll(&end, 1, 60'000), 1) << "it outlives the test";
  for (const int fd : {end.fd, pids[0], pids[1]}) close(fd);
}

TEST(SimulatedHostsLife, NothingOfThemIsLeft) {
  if (const std::string why = SimulatedHosts::WhyNot(); !why.empty()) GTEST_SKIP() << why;
  const ScratchFolder scratch;
  setenv("TEST_TMPDIR", (scratch / "").c_str(), 1);
  int sleeping = -1;
  {
    const SimulatedHosts hosts(1);
    Process shell(hosts.On("h1", {"sh", "-c", "echo started; exec sleep 1000"}));
    shell.WaitForOut("started");
    sleeping = OpenPidFd(hosts.ProcessesOf("h1").at(0).pid);
    ASSERT_GE(sleeping, 0);
  }
  unsetenv("TEST_TMPDIR");
  pollfd end = {sleeping, POLLIN, 0};
  EXPECT_EQ(poll(&end, 1, 0), 1);
  close(sleeping);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "this test has a child";
  EXPECT_THAT(EntriesOf(scratch.path()), IsEmpty());
}

}  // namespace
}  // namespace muster::simulated_hosts_test
