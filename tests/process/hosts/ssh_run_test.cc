// `muster run` over hosts that ssh reaches, as a user runs it: which task runs where, what is shown of it, how it ends,
// and what is said of hosts that can't be used.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/files/file_system.h"
#include "muster/base/testing/built_at.h"
#include "muster/base/testing/scratch_folder.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/hosts_run.h"

namespace muster::ssh_run_test {
namespace {

using ::testing::AllOf, ::testing::Contains, ::testing::ContainsRegex, ::testing::ElementsAre, ::testing::HasSubstr,
    ::testing::Not, ::testing::StartsWith;

// The exit code where a host can't be used: nothing has been started.
constexpr int kNothingStarted = 2;

// Prefix of each script: sets $task to "worker:1", for example.
constexpr char kWhoAmI[] =
    "type=${TF_CONFIG##*\\\"type\\\":\\\"}; type=${type%%\\\"*}; "
    "index=${TF_CONFIG##*\\\"index\\\":}; task=$type:${index%%[,\\}]*}; ";

class SshRun : public HostsRunTest {
 protected:
  static std::vector<std::string> Script(const std::string& script) { return {"sh", "-c", kWhoAmI + script}; }
};

TEST_F(SshRun, TasksRunOnTheirHostsAndTheExitCodeIsTheChiefs) {
  // The chief ends once all others have written their lines.
  const auto run = Run({"--ps", "1", "--workers", "2"},
                       Script("echo one $(hostname); echo two >&2; printf three; : >wrote.$task; "
                              "[ $task = worker:0 ] || exit 0; "
                              "until [ -e wrote.ps:0 ] && [ -e wrote.worker:1 ]; do :; done; exit 7"));
  EXPECT_EQ(run->Wait(), 7) << run->err;
  const std::vector<std::pair<std::string, std::string>> places = {
      {"ps:0", "h1"}, {"worker:0", "h1"}, {"worker:1", "h2"}};
  for (const auto& [task, host] : places) {
    EXPECT_THAT(After(run->out, "[" + task + "] "), ElementsAre("one " + host, "three"));
    EXPECT_THAT(After(run->err, "[" + task + "] "), ElementsAre("two"));
    const std::string who = task == "worker:0" ? "worker:0 \\(the chief\\)" : task;
    EXPECT_THAT(run->err, ContainsRegex(absl::StrCat("\\[muster\\] ", who, " is process [0-9]+ on ", host,
                                                     " at 10\\.77\\.0\\.1", host.substr(1), ":[0-9]+\n")));
  }
}

// Each host's login names its two devices.
TEST_F(SshRun, TheLayoutOfNodesIsStartedOnItsHosts) {
  for (const std::string& host : hosts().names()) {
    Process set(hosts().On(host, {"sh", "-c",
                                  "mkdir -p /run/home/.ssh && echo CUDA_VISIBLE_DEVICES=GPU-a,GPU-b "
                                  ">/run/home/.ssh/environment"}));
    EXPECT_EQ(set.Wait(), 0) << set.err;
  }
  const auto run = Run({"--layout", "node", "--devices", "2", "--no-tensorboard"},
                       Script("echo on $(hostname) with $CUDA_VISIBLE_DEVICES"));
  EXPECT_EQ(run->Wait(), 0) << run->err;
  const std::vector<std::pair<std::string, std::string>> places = {
      {"master:0", "h1 with GPU-a"}, {"ps:0", "h1 with GPU-b"}, {"worker:0", "h1 with GPU-b"},
      {"worker:1", "h1 with GPU-a"}, {"ps:1", "h2 with GPU-a"}, {"worker:2", "h2 with GPU-a"},
      {"worker:3", "h2 with GPU-b"}};
  for (const auto& [task, place] : places)
    EXPECT_THAT(After(run->out, "[" + task + "] "), ElementsAre("on " + place)) << task;
  EXPECT_EQ(std::count(run->out.begin(), run->out.end(), '\n'), places.size()) << run->out;
}

// h1 takes one task that trains, h2 the others; ps take no slot.
TEST_F(SshRun, TasksGoWhereTheHostFileHasSlots) {
  std::ofstream(Shared("hosts")) << "# the small one first\n"
                                 << "h1 slots=1 address=10.77.0.11\n"
                                 << "h2 slots=3 address=" << SimulatedHosts::AddressOf("h2") << "\n";
  const std::vector<std::string> from_file = {"--host_file", Shared("hosts"), "--ssh-config", hosts().ssh_config()};
  const auto run = Run(Joined(from_file, {"--ps", "2", "--workers", "4"}), Script("echo on $(hostname) $TF_CONFIG"));
  EXPECT_EQ(run->Wait(), 0) << run->err;
  const std::vector<std::pair<std::string, std::string>> places = {
      {"ps:0", "h1"}, {"ps:1", "h2"}, {"worker:0", "h1"}, {"worker:1", "h2"}, {"worker:2", "h2"}, {"worker:3", "h2"}};
  for (const auto& [task, host] : places)
    EXPECT_THAT(After(run->out, "[" + task + "] "),
                ElementsAre(AllOf(HasSubstr("on " + host + " "), HasSubstr("10.77.0.11:"))))
        << task;
  const auto full = Run(Joined(from_file, {"--ps", "0", "--workers", "5"}), Script(": >started"));
  EXPECT_EQ(full->Wait(), kNothingStarted) << full->err;
  EXPECT_THAT(full->err, HasSubstr("5 tasks train and the 2 hosts have 4 slots"));
  EXPECT_FALSE(std::filesystem::exists(Shared("started")));
}

TEST_F(SshRun, AnEvaluatorOnAnotherHostThanTheChiefIsToldWhatItNeeds) {
  const auto run = Run({"--ps", "1", "--workers", "1", "--evaluator", "--model_dir", "/tmp/model"}, Script(":"));
  EXPECT_EQ(run->Wait(), 0) << run->err;
  const size_t said = run->err.find(
      "the evaluator on h2 finds no checkpoint unless /tmp/model is a folder that it "
      "shares with h1, where worker:0 writes all of them; training works without");
  ASSERT_NE(said, std::string::npos) << run->err;
  EXPECT_LT(said, run->err.find(" is process ")) << "before anything starts";
}

TEST_F(SshRun, WhatWorksWithoutASharedModelFolderIsSaidBeforeAnythingStarts) {
  const auto run = Run({"--ps", "2", "--workers", "1", "--model_dir", "/tmp/model"}, Script(":"));
  EXPECT_EQ(run->Wait(), 0) << run->err;
  const size_t said = run->err.find("muster run: unless h2 shares /tmp/model with h1, worker:0 alone writes to h1");
  ASSERT_NE(said, std::string::npos) << run->err;
  EXPECT_LT(said, run->err.find(" is process ")) << "before anything starts";
}

// The program and the library that it needs are on h1, on h2 is the program alone.
TEST_F(SshRun, ALibraryThatIsMissingOnAHostIsNamedWithTheHost) {
  for (const char* host : {"h1", "h2"}) {
    Process install(hosts().On(host, {"install", "-D", "-t", "/tmp/program", BinFolder() + "/borrower"}));
    ASSERT_EQ(install.Wait(), 0) << install.err;
  }
  Process lend(hosts().On("h1", {"install", "-t", "/tmp/program", BinFolder() + "/liblender.so"}));
  ASSERT_EQ(lend.Wait(), 0) << lend.err;
  const auto run = Run({"--hosts", "h2,h1", "--ssh-config", hosts().ssh_config(), "--ps", "0", "--workers", "2"},
                       {"/tmp/program/borrower"});
  EXPECT_EQ(run->Wait(), 127) << run->err;
  EXPECT_THAT(run->err, ContainsRegex("first failure: worker:0 [^\n]*liblender.so, a shared library of its program, "
                                      "isn't found on h2"))
      << run->err;
}

// The rest is the host's own, what a login there gets, also where the variable has the same name here.
TEST_F(SshRun, OnlyWhatEnvNamesTravelsAndArrivesAsItIs) {
  const std::string odd = "a\nb \"c\" 'd' %e %% $HOME `f` \\ \t=\xff";
  const std::string function = "() {  echo \"hi\";\n echo 100%\n}";
  const std::map<std::string, std::string> stays = {
      {"HOME", "/of/here"},       {"LD_LIBRARY_PATH", "/of/here"}, {"LD_PRELOAD", "libc.so.6"},
      {"SSH_CONNECTION", "here"}, {"SLURM_JOB_ID", "77"},          {"SLURM_PROCID", "3"},
      {"SECRET", "of here"},      {"PYTHONPATH", "/of/here"},      {"BASH_FUNC_hidden%%", function}};
  environment_ = {
      {"OWN", odd}, {"BASH_FUNC_hello%%", function}, {"GIVEN", "replaced"}, {"PATH", "/of/here:/usr/bin:/bin"}};
  environment_.insert(environment_.end(), stays.begin(), stays.end());
  // Without a shell, which would drop what it takes for no name.
  const auto run = Run({"--hosts", "h2", "--ssh-config", hosts().ssh_config(), "--ps", "0", "--workers", "1", "--env",
                        "OWN", "--env", "BASH_FUNC_hello%%", "--env", "GIVEN=" + odd, "--env", "EMPTY="},
                       {"cp", "/proc/self/environ", Shared("environ")});
  EXPECT_EQ(run->Wait(), 0) << run->err;
  const std::string environ = PosixFileSystem().ReadFile(Shared("environ")).value_or("");
  const std::vector<std::string> seen = absl::StrSplit(environ, '\0');
  for (const std::string& sent : {"OWN=" + odd, "BASH_FUNC_hello%%=" + function, "GIVEN=" + odd, std::string("EMPTY=")})
    EXPECT_THAT(seen, Contains(sent));
  for (const auto& [name, value] : stays) EXPECT_THAT(seen, Not(Contains(absl::StrCat(name, "=", value))));
  EXPECT_THAT(seen, Contains("HOME=" + SimulatedHosts::home()));
  EXPECT_THAT(seen, Contains(StartsWith("PATH=")));
  EXPECT_THAT(seen, Not(Contains(AllOf(StartsWith("PATH="), HasSubstr("/of/here")))));
}

TEST_F(SshRun, ManyLinesComeWholeAndInOrder) {
  const auto run = Run({"--ps", "0", "--workers", "2"}, Script("seq 1 200000"));
  EXPECT_EQ(run->Wait(), 0) << run->err;
  for (const std::string worker : {"0", "1"}) {
    const std::vector<std::string> lines = After(run->out, "[worker:" + worker + "] ");
    ASSERT_EQ(lines.size(), 200000);
    for (size_t i = 0; i < lines.size(); ++i) ASSERT_EQ(lines[i], std::to_string(i + 1));
  }
}

TEST_F(SshRun, HostsGetACopyOfAFolderThatTheyDoNotSee) {
  const ScratchFolder code;  // h1 and h2 have a /tmp of their own
  const auto on_h0 = [&](const std::string& script) {
    Process process(hosts().On("h0", {"sh", "-c", "cd " + (code / "") + " && " + script}));
    EXPECT_EQ(process.Wait(), 0) << process.err;
  };
  on_h0(
      "mkdir sub && echo first >data && seq 300000 >large && "
      "echo 'cat ../data; sum <../large; pwd; echo lost >../left' >train.sh && chmod +x train.sh && "
      "echo build >.musterignore && mkdir build && echo no >build/no");
  const auto run_there = [&](const std::vector<std::string>& flags) {
    const std::vector<std::string> words = {"sh",
                                            "-c",
                                            "cd " + (code / "sub") + " && exec \"$@\"",
                                            "sh",
                                            BinFolder() + "/muster",
                                            "run",
                                            "--hosts",
                                            "h1,h2",
                                            "--ssh-config",
                                            hosts().ssh_config(),
                                            "--ps",
                                            "0",
                                            "--workers",
                                            "2",
                                            "--copy",
                                            ".."};
    return std::make_unique<Process>(hosts().On("h0", Joined(Joined(words, flags), {"--", "sh", "../train.sh"})));
  };
  const auto first = run_there({});
  EXPECT_EQ(first->Wait(), 0) << first->err;
  EXPECT_THAT(first->err, HasSubstr("copied 4 files")) << first->err;
  for (const std::string worker : {"0", "1"}) {
    const std::vector<std::string> lines = After(first->out, "[worker:" + worker + "] ");
    ASSERT_EQ(lines.size(), 3) << first->out;
    EXPECT_EQ(lines[0], "first");
    EXPECT_THAT(lines[2], ContainsRegex("^/run/home/.cache/muster/work/h[12]-[0-9a-f]+/[0-9a-f]+/sub$"));
  }
  // Only what has changed goes again, and no copy outlives its run.
  on_h0("echo second >data");
  const auto second = run_there({});
  EXPECT_EQ(second->Wait(), 0) << second->err;
  EXPECT_THAT(second->err, HasSubstr("copied 1 file (7 bytes) to h1; copied 1 file (7 bytes) to h2"));
  EXPECT_THAT(After(second->out, "[worker:1] "), Contains("second"));
  for (const std::string& host : hosts().names()) {
    hosts().AwaitNothingOn(host);
    Process find(hosts().On(host, {"find", "/run/home/.cache/muster/work", "-mindepth", "2", "-type", "d"}));
    EXPECT_EQ(find.Wait(), 0) << find.err;
    EXPECT_EQ(find.out, "");
  }
  on_h0("[ -z \"$(find . -name '.muster-seen*' -o -name left)\" ]");
  const auto plan = run_there({"--dry-run"});
  EXPECT_EQ(plan->Wait(), 0) << plan->err;
  EXPECT_THAT(plan->out, ContainsRegex("code for each host: [0-9]+ files, 2.0 MB[^\n]*\n  2.0 MB  large\n"));
}

// h1 has as many logins under way as its sshd bears, MaxStartups: it drops every other connection.
TEST_F(SshRun, AHostThatDropsConnectionsIsTriedAgain) {
  Process others(
      hosts().On("h0", {"bash", "-c",
                        "while [ ${n:-0} -lt 6 ]; do exec {held}<>/dev/tcp/" + SimulatedHosts::AddressOf("h1") +
                            "/22; if read -r version <&$held && [[ $version = SSH-* ]]; then n=$((n + 1)); fi; done; "
                            "echo six; exec sleep 600"}));
  others.WaitForOut("six");
  ASSERT_EQ(mkfifo(Shared("dials").c_str(), 0600), 0);
  Process dials({"/usr/bin/env", "sh", "-c",
                 absl::StrCat("exec 3<>\"$0\"; echo listens; for dial in one two; do read -r line <&3; echo $dial; ",
                              "done; exec sleep infinity"),
                 Shared("dials")});
  dials.WaitForOut("listens\n");
  std::filesystem::create_directory(Shared("bin"));
  std::ofstream(Shared("bin/ssh")) << "#!/bin/sh\ncase \"$*\" in *\" h1 \"*) echo 1<>" << Shared("dials")
                                   << " ;; esac\nexec /usr/bin/ssh \"$@\"\n";
  std::filesystem::permissions(Shared("bin/ssh"), std::filesystem::perms::owner_all);
  Process run(hosts().On("h0", {"env", "PATH=" + Shared("bin") + ":/usr/bin:/bin", BinFolder() + "/muster", "run",
                                "--hosts", "h1,h2", "--ssh-config", hosts().ssh_config(), "--ps", "0", "--workers", "2",
                                "--", "echo", "it trains"}),
              {.directory = hosts().shared()});
  dials.WaitForOut("two\n");
  others.Signal(SIGKILL);
  EXPECT_EQ(run.Wait(), 0) << run.err;
  for (const std::string worker : {"0", "1"})
    EXPECT_THAT(After(run.out, "[worker:" + worker + "] "), ElementsAre("it trains"));
}

TEST_F(SshRun, AFolderThatAllHostsSeeIsNotCopied) {
  const auto run = Run({"--ps", "0", "--workers", "2", "--copy", "."}, Script("pwd"));
  EXPECT_EQ(run->Wait(), 0) << run->err;
  EXPECT_THAT(run->err, HasSubstr("h1, h2 see the folder\n"));
  for (const std::string worker : {"0", "1"})
    EXPECT_THAT(After(run->out, "[worker:" + worker + "] "), ElementsAre(hosts().shared()));
}

TEST_F(SshRun, HostsThatCannotKeepTheCodeAreAllNamedAndNothingIsStarted) {
  const std::string files = "/run/home/.cache/muster/files";
  Process occupy(hosts().On("h1", {"sh", "-c", "mkdir -p /run/home/.cache/muster && : >" + files}));
  EXPECT_EQ(occupy.Wait(), 0) << occupy.err;
  Process fill(
      hosts().On("h2", {"sh", "-c", "mkdir -p " + files + " && mount -t tmpfs -o size=64k,mode=700 none " + files}));
  EXPECT_EQ(fill.Wait(), 0) << fill.err;
  const ScratchFolder code;
  std::ofstream(code / "train.sh") << "echo started";
  std::ofstream(code / "large") << std::string(1 << 20, 'x');
  Process run(hosts().On("h0", {"sh", "-c", "cd " + code.path() + " && exec \"$@\"", "sh", BinFolder() + "/muster",
                                "run", "--hosts", "h1,h2", "--ssh-config", hosts().ssh_config(), "--ps", "0",
                                "--workers", "2", "--copy", ".", "--", "sh", "train.sh"}));
  EXPECT_EQ(run.Wait(), kNothingStarted) << run.err;
  EXPECT_THAT(After(run.err, "muster run: "),
              ElementsAre(ContainsRegex("^h1: .*" + files), ContainsRegex("^h2: .*(full|No space left)")));
  EXPECT_EQ(run.out, "");
}

TEST_F(SshRun, InterruptedOnceAllEndGracefully) {
  const auto run = Train();
  EndTraining(*run);
  EXPECT_THAT(run->err.substr(run->err.find("interrupted: ending")), HasSubstr("Saving checkpoints for "));
}

TEST_F(SshRun, WhatATaskLeavesBehindEndsWithTheRun) {
  const auto run = Run({"--ps", "0", "--workers", "2"}, Script("setsid sleep 1000 >/dev/null 2>&1 & exit 0"));
  EXPECT_EQ(run->Wait(), 0) << run->err;
}

TEST_F(SshRun, HostsThatCannotBeUsedAreAllNamedAndNothingIsStarted) {
  const std::string config = Shared("ssh_config");
  std::ofstream(config) << "Host stranger\nHostName 10.77.0.11\nHostKeyAlias h1\nPubkeyAuthentication no\n"
                        << "Host unknown\nHostName 10.77.0.12\nHostKeyAlias another\n"
                        << "Host away\nHostName 10.77.0.99\n"
                        << "Host *\nInclude " << hosts().ssh_config() << "\n";
  const auto run =
      Run({"--hosts", "h1,nowhere,stranger,unknown,away", "--ssh-config", config, "--ps", "1", "--workers", "2"},
          Script(": >started"));
  EXPECT_EQ(run->Wait(), kNothingStarted) << run->err;
  EXPECT_EQ(run->out, "");
  const std::vector<std::pair<std::string, std::string>> reasons = {{"nowhere", "can't be resolved"},
                                                                    {"stranger", "denies the login"},
                                                                    {"unknown", "a key that isn't known"},
                                                                    {"away", "can't be reached"}};
  for (const auto& [host, why] : reasons)
    EXPECT_THAT(After(run->err, "muster run: " + host), ElementsAre(HasSubstr(why))) << run->err;
  EXPECT_THAT(After(run->err, "muster run: "), ::testing::SizeIs(reasons.size()));
  EXPECT_THAT(EntriesOf(hosts().shared()), ElementsAre("ssh_config"));
}

// Muster's copy is there, and can't be executed.
TEST_F(SshRun, AHomeThatIsMountedNoexecIsNamed) {
  Process mount(hosts().On(
      "h2", {"sh", "-c", "mkdir /run/home/.cache && mount -t tmpfs -o noexec,mode=700 none /run/home/.cache"}));
  EXPECT_EQ(mount.Wait(), 0) << mount.err;
  const auto run = Run({"--ps", "0", "--workers", "2"}, Script(": >started"));
  EXPECT_EQ(run->Wait(), kNothingStarted) << run->err;
  EXPECT_THAT(After(run->err, "muster run: "),
              ElementsAre(ContainsRegex("^h2: its agent has ended before it answered: .*Permission denied")));
  EXPECT_THAT(EntriesOf(hosts().shared()), ::testing::IsEmpty());
}

TEST_F(SshRun, AProgramThatIsMissingIsNamedWithItsHost) {
  Process make(hosts().On("h1", {"install", "-m", "755", "/bin/true", "/tmp/of_h1"}));
  EXPECT_EQ(make.Wait(), 0) << make.err;
  const auto run = Run({"--ps", "0", "--workers", "2"}, {"/tmp/of_h1"});
  EXPECT_NE(run->Wait(), 0);
  EXPECT_THAT(run->err, ContainsRegex("worker:1[^\n]* on h2: [^\n]*/tmp/of_h1")) << run->err;
  EXPECT_THAT(run->err, Not(HasSubstr("on h1: ")));
}

// Each shows the hosts by a file of its own that it sees the folder; neither counts as part of the code.
TEST_F(SshRun, TwoRunsOfOneFolderAtOnce) {
  std::filesystem::create_directory(Shared("code"));
  std::ofstream(Shared("code") + "/train.sh") << "ls; sleep 1\n";
  const auto start = [&] {
    return std::make_unique<Process>(
        hosts().On("h0", {BinFolder() + "/muster", "run", "--hosts", "h1,h2", "--ssh-config", hosts().ssh_config(),
                          "--copy", ".", "--ps", "0", "--workers", "2", "--", "sh", "train.sh"}),
        ProcessOptions{.directory = Shared("code")});
  };
  const auto one = start(), other = start();
  for (Process* run : {one.get(), other.get()}) {
    EXPECT_EQ(run->Wait(), 0) << run->err;
    EXPECT_THAT(After(run->out, "[worker:1] "), ::testing::ElementsAre("train.sh"));
    EXPECT_THAT(run->err, HasSubstr("h1, h2 see the folder"));
  }
}

}  // namespace
}  // namespace muster::ssh_run_test
