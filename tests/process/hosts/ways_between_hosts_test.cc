// What is found out about the ways between hosts before anything starts, and at which addresses and ports tasks are.
#include <gmock/gmock.h>
#include <signal.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "muster/base/net/port_range.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/engines.h"
#include "tests/process/testing/hosts_run.h"
#include "tests/process/testing/port_proof.h"

namespace muster::ways_between_hosts_test {
namespace {

using ::testing::AllOf, ::testing::ContainsRegex, ::testing::Each, ::testing::ElementsAre, ::testing::HasSubstr,
    ::testing::IsEmpty, ::testing::Not, ::testing::SizeIs;

constexpr int kNothingStarted = 2;

void Do(const SimulatedHosts& hosts, const std::string& host, const std::string& script) {
  Process process(hosts.On(host, {"sh", "-ec", script}));
  EXPECT_EQ(process.Wait(), 0) << process.err;
}

// h1 sends nothing to h2 any more, and so doesn't answer it either.
void BreakTheWay(const SimulatedHosts& hosts, const std::string& verb) {
  Do(hosts, "h1", absl::StrCat("ip route ", verb, " blackhole ", SimulatedHosts::AddressOf("h2"), "/32"));
}

constexpr char kFromFirst[] =
    "h1 can't reach h2 at 10\\.77\\.0\\.12:[0-9]+ \\(eth0\\) from 10\\.77\\.0\\.11: [^;]*\\(errno [0-9]+\\); h2 has "
    "10\\.77\\.0\\.12 \\(eth0\\)";
constexpr char kFromSecond[] =
    "h2 can't reach h1 at 10\\.77\\.0\\.11:[0-9]+ \\(eth0\\) from 10\\.77\\.0\\.12: no answer within 1s; h1 has ";

class WaysBetweenHosts : public HostsRunTest {};

TEST_F(WaysBetweenHosts, APairThatDoesNotReachEachOtherIsNamedBothWaysAndNothingIsStarted) {
  BreakTheWay(hosts(), "add");
  const auto run = Run({"--ps", "0", "--workers", "2"}, {"sh", "-c", ": >" + Shared("started")});
  EXPECT_EQ(run->Wait(), kNothingStarted) << run->err;
  EXPECT_THAT(After(run->err, "muster run: "), ElementsAre(ContainsRegex(kFromFirst), ContainsRegex(kFromSecond)));
  EXPECT_THAT(EntriesOf(hosts().shared()), IsEmpty());
}

// As Debian writes it.
TEST_F(WaysBetweenHosts, AHostWhoseOwnNameIsLoopbackIsNeverToldAsThat) {
  for (const std::string& host : hosts().names())
    Do(hosts(), host, absl::StrCat("echo 127.0.1.1 ", host, " >/run/hosts; mount --bind /run/hosts /etc/hosts"));
  const auto run = Run({"--ps", "1", "--workers", "2"}, {"sh", "-c", "echo $TF_CONFIG"});
  EXPECT_EQ(run->Wait(), 0) << run->err;
  EXPECT_THAT(After(run->out, "[worker:1] "),
              ElementsAre(AllOf(HasSubstr("\"10.77.0.11:"), HasSubstr("\"10.77.0.12:"))));
  EXPECT_THAT(run->out, Not(HasSubstr("127.")));
}

TEST_F(WaysBetweenHosts, AHostThatDoesNotAnswerIsNamedWhileItIsAwaited) {
  const std::string to_h0 = absl::StrCat("blackhole ", SimulatedHosts::AddressOf("h0"), "/32");
  Do(hosts(), "h2", "ip route add " + to_h0);
  const auto run = Run({"--ps", "0", "--workers", "2"}, {"true"});
  run->WaitForErr("waiting for h2 since 10s: ssh hasn't got through yet");
  run->Signal(SIGINT);
  EXPECT_NE(run->Wait(), 0) << run->err;
  EXPECT_THAT(run->err, Not(HasSubstr("waiting for h1")));
  Do(hosts(), "h2", "ip route del " + to_h0);
}

TEST_F(WaysBetweenHosts, PortsAreOfTheRangeThatAFirewallLetsThrough) {
  const auto run = Run({"--ps", "2", "--workers", "2", "--ports", "40000-40002"}, {"sh", "-c", "echo $TF_CONFIG"});
  EXPECT_EQ(run->Wait(), 0) << run->err;
  const std::vector<std::string> told = After(run->out, "[worker:1] ");
  ASSERT_THAT(told, SizeIs(1));
  for (const std::string host : {"11", "12"}) {
    const std::vector<std::string> addresses = After(absl::StrReplaceAll(told[0], {{"\"", "\n"}}), "10.77.0." + host);
    EXPECT_THAT(addresses, SizeIs(2)) << told[0];
    EXPECT_THAT(addresses, Each(ContainsRegex("^:4000[0-2]$")));
  }
  const auto more = Run({"--ps", "2", "--workers", "3", "--ports", "40000-40002"}, {"true"});
  EXPECT_EQ(more->Wait(), kNothingStarted) << more->err;
  EXPECT_THAT(more->err, HasSubstr("on h1: no port of 40000-40002 is free; accepted is a wider range"));
}

// $1, $2: the first of the ports that tasks get, and their number. Binds such ports and any that the system gives, at
// all addresses, and holds the last of them.
constexpr char kGrabber[] = R"py(
import collections, random, socket, sys
first, count = map(int, sys.argv[1:])
random.seed(1)
held, taken = collections.deque(maxlen=400), 0
while True:
    taken_by = socket.socket()
    try:
        taken_by.bind(("", 0 if taken % 2 else first + random.randrange(count)))
        taken_by.listen(1)
        taken += 1
        if taken == 500:
            print("grabs", flush=True)
    except OSError:
        pass
    held.append(taken_by)
)py";

// Also the hosts' agents bind ports instead of looking for free ones.
TEST_F(WaysBetweenHosts, EveryTaskGetsItsPortWhileAProcessOfEachHostGrabsPortsAllTheTime) {
  constexpr int kTasks = 16;
  const PortRange usual = UsualPorts();
  std::vector<std::unique_ptr<Process>> grabbers;
  for (const std::string& host : hosts().names()) {
    grabbers.push_back(std::make_unique<Process>(
        hosts().On(host, {"python3", "-c", kGrabber, absl::StrCat(usual.first), absl::StrCat(usual.count)})));
    grabbers.back()->WaitForOut("grabs");
  }
  const auto run = Run({"--ps", "0", "--workers", absl::StrCat(kTasks)}, {"sh", "-c", ScriptThatProvesItsPort()});
  EXPECT_EQ(run->Wait(), 0) << run->err;
  for (int i = 0; i < kTasks; ++i)
    EXPECT_THAT(After(run->out, absl::StrCat("[worker:", i, "] ")), ElementsAre("it was mine")) << run->err;
  EXPECT_THAT(run->err, Not(HasSubstr("address is in use")));
}

class WaysOfExperiments : public OnEveryEngine {};
INSTANTIATE_TEST_SUITE_P(, WaysOfExperiments, ::testing::Values("ssh"), EngineName);

TEST_P(WaysOfExperiments, APairThatDoesNotReachEachOtherFailsBeforeAnythingStarts) {
  BreakTheWay(hosts(), "add");
  WriteExperiment("torchrun: {workers: 2}\nrun: touch " + Aside("started"));
  const Said said = Muster({"train"});
  BreakTheWay(hosts(), "del");
  EXPECT_EQ(said.exit_code, kNothingStarted) << said.err;
  EXPECT_THAT(said.out, AllOf(ContainsRegex(kFromFirst), ContainsRegex(kFromSecond)));
  EXPECT_EQ(StateOf("1"), "FAILED");
  EXPECT_FALSE(std::filesystem::exists(Aside("started")));
  WriteExperiment("torchrun: {workers: 2}\nrun: echo it trains");
  EXPECT_THAT(Out({"train"}), HasSubstr("it trains"));
}

}  // namespace
}  // namespace muster::ways_between_hosts_test
