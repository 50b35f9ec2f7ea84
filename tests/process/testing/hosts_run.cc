#include "tests/process/testing/hosts_run.h"

#include <gmock/gmock.h>
#include <signal.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/testing/built_at.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/killed_run.h"
#include "tests/process/testing/muster_command.h"

namespace muster {
namespace {

using ::testing::HasSubstr, ::testing::Not;

// Where agents of root have their folders on a host.
constexpr char kAgentFolders[] = "/tmp/muster-0/agents";

}  // namespace

void HostsRunTest::SetUp() {
  if (const std::string why = SimulatedHosts::WhyNot(); !why.empty()) GTEST_SKIP() << why;
  hosts_ = std::make_unique<SimulatedHosts>(count_);
}

void HostsRunTest::TearDown() {
  if (!hosts_) return;
  for (const std::string& host : hosts_->names()) {
    if (!hosts_->is_up(host)) continue;
    hosts_->AwaitNothingOn(host);
    Process find(hosts_->On(host, {"find", "/tmp", "-path", absl::StrCat(kAgentFolders, "/*"), "-type", "d"}));
    EXPECT_EQ(find.Wait(), 0) << find.err;
    if (!allows_agent_folders_) {
      EXPECT_EQ(find.out, "") << "on " << host;
    }
  }
}

std::unique_ptr<Process> HostsRunTest::Run(const std::vector<std::string>& flags,
                                           const std::vector<std::string>& program) {
  std::vector<std::string> words = {BinFolder() + "/muster", "run", "--on", "ssh"};
  bool names_hosts = false, has_grace = false;
  for (const std::string& flag : flags) {
    names_hosts |= flag == "--hosts" || flag == "--host_file";
    has_grace |= flag == "--grace";
  }
  if (!has_grace) words = Joined(words, {"--grace", kGrace});
  if (!names_hosts) words = Joined(words, {"--hosts", "h1,h2", "--ssh-config", hosts_->ssh_config()});
  return std::make_unique<Process>(hosts_->On("h0", Joined(Joined(words, flags), Joined({"--"}, program))),
                                   ProcessOptions{.environment = environment_, .directory = hosts_->shared()});
}

std::unique_ptr<Process> HostsRunTest::Train() {
  auto run = Run({"--ps", "1", "--workers", "2", "--muster-ps", "--model_dir", Shared("model")},
                 Joined(ToyThatCounts(), {"--steps=1000000000", "--log_steps=100"}));
  for (const std::string worker : {"0", "1"}) run->WaitForErrLine("[worker:" + worker + "] ", "loss = ", 0);
  return run;
}

void HostsRunTest::AwaitSteps(Process& run, const std::string& worker) {
  size_t at = run.err.size();
  for (int line = 0; line < 5 && at != std::string::npos; ++line)
    at = run.WaitForErrLine("[worker:" + worker + "] ", "loss = ", at);
}

void HostsRunTest::EndTraining(Process& run) {
  run.Signal(SIGINT);
  EXPECT_EQ(run.Wait(), 0) << run.err;
  for (const char* failure : {"first failure", "starting it again", "is lost", "did not end when asked to"})
    EXPECT_THAT(run.err, Not(HasSubstr(failure)));
}

std::string HostsRunTest::PidOf(const Process& run, const std::string& task) {
  std::string pid;
  for (const std::string& who : {task, task + " (the chief)"})
    for (const std::string& life : After(run.err, "[muster] " + who + " is process "))
      pid = life.substr(0, life.find(' '));
  EXPECT_NE(pid, "") << task << " in: " << run.err;
  return pid;
}

}  // namespace muster
