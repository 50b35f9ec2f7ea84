// `muster run` over hosts that the user's own OpenSSH reaches in other ways than by a key in a file: through a jump
// host, by a key that only an ssh-agent has, over a connection that several commands share.
#include <gmock/gmock.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/files/file_system.h"
#include "muster/base/testing/built_at.h"
#include "muster/base/testing/scratch_folder.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/hosts_run.h"

namespace muster::ssh_setups_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::SizeIs;

constexpr int kNothingStarted = 2;

// Makes a namespace of processes whose first one does nothing, and says which number that has outside.
constexpr char kProcessesScript[] =
    "read -r pid rest </proc/self/stat; mount -t proc proc /proc; echo \"first process: $pid\"; exec sleep infinity";

class SshSetups : public HostsRunTest {
 protected:
  void SetUp() override {
    HostsRunTest::SetUp();
    if (IsSkipped()) return;
    processes_ = std::make_unique<Process>(std::vector<std::string>{"/usr/bin/env", "setpriv", "--pdeathsig", "KILL",
                                                                    "unshare", "--mount", "--pid", "--fork",
                                                                    "--kill-child", "sh", "-ec", kProcessesScript});
    processes_->WaitForOut("\n");
    const std::vector<std::string> first = After(processes_->out, "first process: ");
    ASSERT_THAT(first, SizeIs(1)) << processes_->out;
    first_ = first[0];
  }
  // Writes the configuration for these tests: `lines` before those of the hosts.
  void WriteConfig(const std::string& lines) {
    std::ofstream(config()) << lines << "Host *\nInclude " << hosts().ssh_config() << "\n";
  }
  std::string config() const { return scratch_ / "ssh_config"; }
  // The processes of the run, and the masters that its ssh leave in the background, are in a namespace that dies with
  // the test, also when that is killed.
  std::unique_ptr<Process> SayWhere() {
    const std::vector<std::string> apart = {"nsenter", "--target=" + first_,         "--mount", "--pid", "--root", "--",
                                            "env",     "--chdir=" + hosts().shared()};
    return std::make_unique<Process>(
        hosts().On("h0", Joined(apart, {BinFolder() + "/muster", "run", "--hosts", "h1,h2", "--ssh-config", config(),
                                        "--grace", kGrace, "--ps", "0", "--workers", "2", "--", "sh", "-c",
                                        "echo on $(hostname)"})),
        ProcessOptions{.environment = environment_});
  }
  // Both tasks run where they should.
  void ExpectRun() {
    const auto run = SayWhere();
    EXPECT_EQ(run->Wait(), 0) << run->err;
    EXPECT_THAT(After(run->out, "[worker:0] "), ElementsAre("on h1"));
    EXPECT_THAT(After(run->out, "[worker:1] "), ElementsAre("on h2"));
  }
  void Do(const std::string& host, const std::vector<std::string>& words) {
    Process process(hosts().On(host, words));
    EXPECT_EQ(process.Wait(), 0) << process.err;
  }
  // Returns the exit code of a command for a host's master of shared connections: check, exit.
  int TellMaster(const std::string& command, const std::string& host) {
    Process process(hosts().On("h0", {"ssh", "-F", config(), "-O", command, host}));
    return process.Wait();
  }

  const ScratchFolder scratch_;

 private:
  std::unique_ptr<Process> processes_;
  std::string first_;
};

// h2 answers nobody but its neighbours, and all the same its task comes from here.
TEST_F(SshSetups, AHostBehindAJumpHostIsReached) {
  WriteConfig("Host h2\nProxyJump h1\n");
  Do("h2", {"ip", "route", "add", "blackhole", SimulatedHosts::AddressOf("h0") + "/32"});
  ExpectRun();
}

TEST_F(SshSetups, AKeyThatOnlyAnAgentHasLogsIn) {
  const std::string key = scratch_ / "agents_key", socket = scratch_ / "agent";
  const std::vector<std::string> lines = absl::StrSplit(PosixFileSystem().ReadFile(hosts().ssh_config()).value(), '\n');
  std::string others;
  for (const std::string& line : lines)
    if (!line.starts_with("Identit")) absl::StrAppend(&others, line, "\n");
  std::ofstream(config()) << others << "IdentityFile none\n";
  Process agent({"/usr/bin/env", "ssh-agent", "-D", "-a", socket});
  agent.WaitForOut("SSH_AUTH_SOCK=" + socket);
  Do("h0", {"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key});
  for (const std::string& host : hosts().names())
    Do(host, {"sh", "-c", "echo '" + PosixFileSystem().ReadFile(key + ".pub").value() + "' >/run/authorized_keys"});
  Do("h0", {"env", "SSH_AUTH_SOCK=" + socket, "ssh-add", "-q", key});
  std::filesystem::remove(key);
  environment_ = {{"SSH_AUTH_SOCK", ""}};
  const auto alone = SayWhere();
  EXPECT_EQ(alone->Wait(), kNothingStarted) << alone->err;
  EXPECT_THAT(After(alone->err, "muster run: "), SizeIs(2));
  EXPECT_THAT(alone->err,
              HasSubstr("h1 denies the login; is your key in its authorized_keys (ssh-copy-id h1) and, if it "
                        "has a passphrase, in your ssh-agent?"));
  environment_ = {{"SSH_AUTH_SOCK", socket}};
  ExpectRun();
  agent.Signal(SIGTERM);
  agent.Wait();
}

// With ControlPersist ssh leaves a master in the background, as the user wants it. New logins are denied afterwards, so
// the second run can only use that.
TEST_F(SshSetups, ASecondRunUsesTheConnectionThatSshKeeps) {
  WriteConfig("Host *\nControlMaster auto\nControlPersist 600\nControlPath " + (scratch_ / "%h") + "\n");
  ExpectRun();
  for (const std::string& host : hosts().names()) {
    EXPECT_EQ(TellMaster("check", host), 0) << host;
    Do(host, {"rm", "/run/authorized_keys"});
  }
  ExpectRun();
  for (const std::string& host : hosts().names()) EXPECT_EQ(TellMaster("exit", host), 0) << host;
  const auto denied = SayWhere();
  EXPECT_EQ(denied->Wait(), kNothingStarted) << denied->err;
  EXPECT_THAT(denied->err, HasSubstr("h1 denies the login"));
}

// The first ssh of a run is the master of those that follow, and ends with the run. The socket of one that is killed
// stays, which the next ssh takes away.
TEST_F(SshSetups, NoMasterOutlivesARunUnlessTheUserWantsIt) {
  WriteConfig("Host *\nControlMaster auto\nControlPath " + (scratch_ / "%h") + "\n");
  for (int i = 0; i < 2; ++i) {
    ExpectRun();
    for (const std::string& host : hosts().names()) EXPECT_NE(TellMaster("check", host), 0) << host;
  }
}

}  // namespace
}  // namespace muster::ssh_setups_test
