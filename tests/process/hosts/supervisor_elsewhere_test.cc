// `muster train --supervisor HOST`: another host starts and watches the tasks, and commands here ask it by ssh. Their
// ssh gets to the hosts by the test's configuration.
#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/base/testing/built_at.h"
#include "tests/process/testing/engines.h"

namespace muster::supervisor_elsewhere_test {
namespace {

using nlohmann::json;
using ::testing::AllOf, ::testing::Contains, ::testing::ContainsRegex, ::testing::HasSubstr, ::testing::StartsWith;

// The name of an experiment on h1, as a command has said it.
std::string NameIn(const std::string& said) {
  const size_t at = said.find("experiment h1:");
  EXPECT_NE(at, std::string::npos) << said;
  return at == std::string::npos ? "" : said.substr(at + 11, said.find(' ', at + 11) - at - 11);
}

class SupervisorElsewhere : public OnEveryEngine {
 protected:
  void SetUp() override {
    OnEveryEngine::SetUp();
    if (IsSkipped()) return;
    const std::string bin = WriteProgram(
        "ssh", "echo >> " + Aside("logins") + "\nexec /usr/bin/ssh -F " + hosts().ssh_config() + " \"$@\"");
    environment_ = {absl::StrCat("PATH=", bin, ":/usr/bin:/bin")};
  }

  // Returns how often ssh has been started on this machine.
  size_t Logins() const {
    const std::string lines = PosixFileSystem().ReadFile(Aside("logins")).value_or("");
    return static_cast<size_t>(std::count(lines.begin(), lines.end(), '\n'));
  }
};
INSTANTIATE_TEST_SUITE_P(, SupervisorElsewhere, ::testing::Values("ssh"), EngineName);

// h1 starts, watches and restarts the tasks on itself and on h2. This machine asks by ssh.
TEST_P(SupervisorElsewhere, StartsTasksOnItsHosts) {
  const ScriptGate gate(Aside("gate"));
  RunOn("h1,h2", "supervisor: h1\n");
  Write("data", "the code is here\n");
  WriteExperiment("torchrun: {workers: 2}\nrun: cat data; uname -n; read line < " + gate.path() + "; exit $RANK");
  const std::string said = Out({"train", "--detach"});
  const std::string name = NameIn(said), id = name.substr(3);
  EXPECT_THAT(said, HasSubstr("and h1 supervises it: this machine may sleep or go; muster logs " + name + " -f"));
  EXPECT_EQ(Muster({"status", id}).exit_code, 2) << "nothing of it is here";
  const auto logs = StartMuster({"logs", name, "-f"});
  AwaitLines(*logs, id + ".worker.1", 3);
  AwaitLines(*logs, id + ".worker.2", 3);
  const json tasks = Json({"status", name})["tasks"];
  ASSERT_EQ(tasks.size(), 2U);
  EXPECT_EQ(tasks[0]["host"], "h1");
  EXPECT_EQ(tasks[1]["host"], "h2");
  EXPECT_THAT(Out({"ls", "h1:"}), HasSubstr(id));
  gate.LetThrough(2);
  EXPECT_EQ(logs->Wait(), 0) << logs->err;
  EXPECT_THAT(LinesOf(logs->out, id + ".worker.2"), AllOf(Contains("the code is here"), Contains("h2"))) << logs->out;
  EXPECT_EQ(Json({"status", name})["state"], "FAILED");
}

TEST_P(SupervisorElsewhere, ItsExperimentIsShownAndKilledFromHere) {
  RunOn("h1", "supervisor: h1\non: local\n");
  WriteExperiment("run: echo begun on $(uname -n); sleep 1000");
  const auto train = StartMuster({"train"});
  train->WaitForErr(" ends it");
  train->WaitForOut("begun on h1");
  const std::string name = NameIn(train->err);
  EXPECT_THAT(train->err, HasSubstr("and h1 supervises it: this machine may sleep or go")) << "at its start";
  EXPECT_THAT(Out({"status", name}), StartsWith("experiment " + name + " of project "));
  const Said kill = Muster({"kill", name});
  EXPECT_EQ(kill.exit_code, 0) << kill.err;
  EXPECT_THAT(kill.out, HasSubstr("experiment " + name + ": KILLED\n"));
  EXPECT_THAT(Muster({"kill", name}).err, HasSubstr("experiment " + name + " had ended before: KILLED"));
  EXPECT_EQ(train->Wait(), 130) << train->err;
  EXPECT_THAT(train->err, AllOf(HasSubstr("experiment " + name + ": KILLED"), HasSubstr(" on h1\n")));
}

TEST_P(SupervisorElsewhere, AGridsResultsAreShownAtItsEnd) {
  RunOn("h1", "supervisor: h1\non: local\n");
  WriteExperiment("parameters: {rate: [1, 2]}\nrun: echo rate {{ rate }}");
  const Said said = Muster({"train", "--param", "name=it's \"quoted\""});
  EXPECT_EQ(said.exit_code, 0) << said.err;
  EXPECT_THAT(said.out, AllOf(HasSubstr("rate 1\n"), HasSubstr("rate 2\n"),
                              ContainsRegex("\nRUN  STATE [^\n]*\n[0-9]+[.]1  FINISHED  it.s \"quoted\" +1\n")));
}

TEST_P(SupervisorElsewhere, MistakesAreSaidBeforeAnythingStarts) {
  RunOn("h1", "supervisor: h1\non: local\n");
  WriteExperiment("run: echo never");
  EXPECT_THAT(Mistake({"train", "--param", "nothing"}), HasSubstr("--param \"nothing\": there is no"));
  EXPECT_THAT(Mistake({"train", "--supervisor", "nowhere"}), HasSubstr("nowhere has a name that can't be resolved"));
  EXPECT_THAT(Mistake({"train", "--host_file", "/etc/hosts"}), HasSubstr("accepted is a file in "));
  EXPECT_THAT(Mistake({"tensorboard", "h1:1"}), HasSubstr("runs on the experiment's own host"));
  EXPECT_THAT(Mistake({"status", "h1:1", "h2:1"}), HasSubstr("accepted are experiments of one host at a time"));
  EXPECT_THAT(Mistake({"status", "--json", "h1:999"}), HasSubstr("no experiment 999"));
  EXPECT_THAT(Mistake({"kill", "h1:1", "1"}), HasSubstr("accepted: h1:1, or two commands"));
  EXPECT_THAT(Mistake({"kill", "h1:"}), HasSubstr("which experiment of h1?"));
  EXPECT_THAT(Mistake({"results", "h1:1", "--html", "page"}), HasSubstr("which would be h1's"));
  EXPECT_THAT(Mistake({"train", "--experiment", "1"}), HasSubstr("accepted: --experiment h1:1, or --supervisor here"));
  EXPECT_THAT(Mistake({"train", "--experiment", "h1:"}), HasSubstr("which one?"));
  EXPECT_THAT(Mistake({"train", "--experiment", "h1:1", "--supervisor", "h2"}), HasSubstr("h1:1 is h1's"));
  EXPECT_THAT(Mistake({"train", "--supervisor", "fe80::1"}), HasSubstr("~/.ssh/config gives names"));
  EXPECT_THAT(Out({"train", "--dry-run"}), HasSubstr("echo never"));
}

// Ctrl-C only stops showing it, and it ends although this machine is cut off.
TEST_P(SupervisorElsewhere, NeedsThisMachineNoMore) {
  const ScriptGate gate(Aside("gate"));
  RunOn("h1", "supervisor: h1\non: local\n");
  WriteExperiment("run: echo attempt $MUSTER_ATTEMPT; read line < " + gate.path());
  const auto train = StartMuster({"train"});
  train->WaitForErr(" ends it");
  train->WaitForOut("attempt");
  const std::string name = NameIn(train->err);
  train->Signal(SIGINT);
  EXPECT_EQ(train->Wait(), 0) << train->err;
  EXPECT_THAT(train->err.substr(train->err.find('\n')), HasSubstr("muster logs " + name + " -f shows it"));
  hosts().Cut("h0");
  gate.LetThrough(1);
  hosts().AwaitNothingOn("h1");
  hosts().Heal("h0");
  EXPECT_EQ(Json({"status", name})["state"], "FINISHED");
  const auto again = StartMuster({"train", "--experiment", name});
  gate.LetThrough(1);
  EXPECT_EQ(again->Wait(), 0) << again->err;
  EXPECT_EQ(Json({"status", name})["attempt"], 2);
  EXPECT_EQ(LinesOf(again->out, name.substr(3) + ".master").size(), 3U) << "its own lines alone: " << again->out;
}

TEST_P(SupervisorElsewhere, ABrokenConnectionIsNoFailure) {
  RunOn("h1", "supervisor: h1\non: local\n");
  WriteExperiment("run: echo begun; sleep 1000");
  const auto train = StartMuster({"train"});
  train->WaitForErr(" ends it");
  train->WaitForOut("begun");
  const std::string name = NameIn(train->err);
  hosts().CutSsh("h1");
  EXPECT_EQ(train->Wait(), 138) << train->err;
  EXPECT_THAT(train->err, HasSubstr("goes on there without it: muster status " + name + " says how"));
  EXPECT_EQ(Json({"status", name})["state"], "RUNNING");
  // What h1 says of it is what a person here can type.
  EXPECT_THAT(Muster({"train", "--experiment", name}).err, HasSubstr("muster kill " + name + " ends it"));
  const std::string again = Out({"rerun", name, "--detach"});
  EXPECT_THAT(again, HasSubstr("muster kill " + NameIn(again) + " ends it"));
  EXPECT_EQ(Muster({"kill", name, NameIn(again)}).exit_code, 0);
}

// All that speaks of h1's experiments means one registry, also where the user there keeps it elsewhere.
TEST_P(SupervisorElsewhere, TheHostsOwnHomeIsUsed) {
  Process set(hosts().On("h1", {"sh", "-c",
                                "mkdir -p /run/home/.ssh && echo MUSTER_HOME=/run/home/kept "
                                "> /run/home/.ssh/environment"}));
  ASSERT_EQ(set.Wait(), 0) << set.err;
  RunOn("h1", "supervisor: h1\non: local\n");
  WriteExperiment("run: echo done");
  const Said said = Muster({"train"});
  Process reset(hosts().On("h1", {"rm", "/run/home/.ssh/environment"}));
  EXPECT_EQ(reset.Wait(), 0);
  EXPECT_EQ(said.exit_code, 0) << said.err;
  EXPECT_THAT(said.out, HasSubstr("done\n"));
  EXPECT_THAT(said.err, HasSubstr("output: /run/home/kept/experiments/1/output on h1\n"));
}

// It means this machine, whatever the file says: no ssh is started at all.
TEST_P(SupervisorElsewhere, HereKeepsItOnThisMachine) {
  RunOn("h1", "supervisor: h1\non: local\n");
  WriteExperiment("run: echo ran");
  const Said said = Muster({"train", "--supervisor", "here"});
  EXPECT_EQ(said.exit_code, 0) << said.err;
  EXPECT_THAT(LinesOf(said.out, "1.master"), Contains("ran"));
  EXPECT_EQ(StateOf("1"), "FINISHED");
  EXPECT_EQ(Logins(), 0U);
  EXPECT_THAT(Out({"train"}), HasSubstr("ran\n"));
  EXPECT_GT(Logins(), 0U) << "without the flag it is on h1";
}

// ssh doesn't read what is the loop's.
TEST_P(SupervisorElsewhere, EachCommandIsOneLoginAlsoInALoop) {
  RunOn("h1", "supervisor: h1\non: local\n");
  WriteExperiment("run: echo done");
  const std::string name = NameIn(Out({"train", "--detach"}));
  size_t logins = Logins();
  EXPECT_GT(logins, 0U);
  const std::vector<std::vector<std::string>> commands = {
      {"logs", name, "-f"}, {"status", name}, {"kill", name}, {"results", name}, {"ls", "h1:"}};
  for (const std::vector<std::string>& command : commands) {
    Muster(command);
    EXPECT_EQ(Logins(), ++logins) << command[0];
  }
  Write("ids", name + "\n" + name + "\n" + name + "\n");
  const std::string loop = "while read id; do " + BinFolder() + "/muster show $id --json; done < ids";
  Process shell(hosts().On("h0", {"sh", "-c", loop}), Options());
  EXPECT_EQ(shell.Wait(), 0) << shell.err;
  EXPECT_EQ(std::count(shell.out.begin(), shell.out.end(), '\n'), 3) << shell.out;
  EXPECT_EQ(Logins(), logins + 3);
}

}  // namespace
}  // namespace muster::supervisor_elsewhere_test
