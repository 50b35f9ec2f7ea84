// With a program in the place of ssh that runs the command on this machine, or fails as the real one does.
#include "muster/launch/engines/ssh/ssh_way.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/clock.h"
#include "muster/base/files/file_system.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/engines/contact/contact_engine.h"
#include "muster/launch/engines/contact/host_contact.h"
#include "muster/launch/testing/piped_program_text.h"

namespace muster::ssh_way_test {
namespace {

using ::testing::AllOf, ::testing::Each, ::testing::HasSubstr, ::testing::Le, ::testing::Not;

// The last two arguments are the host and the command. FOLDER/HOST is the host's home.
constexpr char kFakeSsh[] = R"sh(#!/bin/sh
while [ $# -gt 2 ]; do shift; done
home=FOLDER/$1
mkdir -p "$home"
echo dialled >>"$home/log"
case $1 in
  denied*) echo "me@$1: Permission denied (publickey)." >&2; exit 255 ;;
  dropped) [ "$(wc -l <"$home/log")" -gt 2 ] || { echo "kex_exchange_identification: Connection closed by remote host" >&2; exit 255; } ;;
  full) mkdir -p "$home/.cache/muster/bin"; : >"$home/.cache/muster/bin/HASH" ;;
  old) PATH=FOLDER/old:$PATH ;;
  chatty) echo "Welcome to $1" ;;
  broken) echo "no shell for you"; exit 1 ;;
  gated*) read -r go <FOLDER/gate ;;
  silent) exec sleep 1000 ;;
  mute) echo "Connection timed out during banner exchange" >&2; exit 255 ;;
esac
HOME=$home exec sh -c "$2"
)sh";

// In the place of muster: says with what it was started, then gives back what it gets.
constexpr char kFakeMuster[] = "#!/bin/sh\necho \"agent $*\"\nexec cat\n";

class Answers final : public EngineEvents {
 public:
  Answers(std::map<std::string, AgentStream>& streams, std::map<std::string, std::string>& failures)
      : streams_(streams), failures_(failures) {}
  void OnStream(const std::string& host, AgentStream stream) override {
    EXPECT_TRUE(streams_.emplace(host, std::move(stream)).second);
  }
  void OnNoStream(const std::string& host, const absl::Status& why) override {
    EXPECT_TRUE(failures_.emplace(host, why.message()).second);
  }

 private:
  std::map<std::string, AgentStream>& streams_;
  std::map<std::string, std::string>& failures_;
};

class HostContactTest : public ::testing::Test {
 protected:
  HostContactTest() {
    signal(SIGPIPE, SIG_IGN);
    std::string script = kFakeSsh;
    for (size_t at = 0; (at = script.find("FOLDER", at)) != std::string::npos;)
      script.replace(at, std::string("FOLDER").size(), folder_.path());
    script.replace(script.find("HASH"), 4, options_.muster.hash);
    MakeProgram("ssh", script);
    mkdir((folder_.path() + "/old").c_str(), 0700);
    MakeProgram("old/getconf", "#!/bin/sh\necho glibc 2.17\n");
    std::string content = kFakeMuster;
    content += "# " + std::string(300'000, 'x') + "\n";  // more than a pipe takes at once
    MakeProgram("muster", content);
    options_.muster.bytes = content.size();
    options_.muster_path = folder_.path() + "/muster";
    ssh_.program = folder_.path() + "/ssh";
    utsname here;
    uname(&here);
    options_.muster_needs.machine = here.machine;
  }

  void MakeProgram(const std::string& name, const std::string& text) {
    std::ofstream(folder_.path() + "/" + name) << text;
    chmod((folder_.path() + "/" + name).c_str(), 0700);
  }
  int Dialled(const std::string& host) {
    const std::string log = PosixFileSystem().ReadFile(folder_.path() + "/" + host + "/log").value_or("");
    return static_cast<int>(std::count(log.begin(), log.end(), '\n'));
  }
  // Returns all streams, or all that went wrong in the order of the hosts.
  absl::StatusOr<std::map<std::string, AgentStream>> Contact(const std::vector<std::string>& hosts) {
    std::map<std::string, AgentStream> streams;
    std::map<std::string, std::string> failures;
    Answers answers(streams, failures);
    options_.way = std::make_shared<SshWay>(ssh_);
    ContactEngine engine(options_, loop_, RealClock());
    EXPECT_EQ(engine.Start(answers), absl::OkStatus());
    for (const std::string& host : hosts) engine.Connect(host);
    while (streams.size() + failures.size() < hosts.size()) {
      loop_.RunOnce(engine.deadline());
      engine.OnTime();
      if (after_round_) after_round_(streams.size());
    }
    std::vector<std::string> lines;
    for (const std::string& host : hosts)
      if (failures.contains(host)) lines.push_back(failures[host]);
    if (lines.empty()) return streams;
    return absl::UnavailableError(absl::StrJoin(lines, "\n"));
  }
  std::string MessageOf(const std::vector<std::string>& hosts) {
    const auto streams = Contact(hosts);
    EXPECT_FALSE(streams.ok());
    return std::string(streams.status().message());
  }
  // What the agent has said, once it has said a line.
  static std::string FirstLine(AgentStream& stream) {
    std::string text = stream.read_already;
    pollfd more = {stream.in_fd, POLLIN, 0};
    while (text.find('\n') == std::string::npos && poll(&more, 1, -1) == 1 && ReadSome(more.fd, text)) {
    }
    return text.substr(0, text.find('\n'));
  }

  ScratchFolder folder_;
  FdLoop loop_{RealClock()};
  std::function<void(size_t streams)> after_round_;
  SshSettings ssh_;
  ContactOptions options_{.environment = {kUsualPath}, .job = "job-1", .muster = {.hash = "0123abcd"}};
};

TEST_F(HostContactTest, CopiesMusterOnceAndHandsOverTheStream) {
  auto streams = Contact({"a"});
  ASSERT_TRUE(streams.ok()) << streams.status();
  EXPECT_EQ(FirstLine(streams->at("a")), "agent agent --attach job-1 --grace 30");
  options_.muster_path = "/no/such/file";  // and isn't needed again
  streams = Contact({"a"});
  ASSERT_TRUE(streams.ok()) << streams.status();
  EXPECT_EQ(FirstLine(streams->at("a")), "agent agent --attach job-1 --grace 30");
}

// A program with another byte at its end is another build. The host keeps both.
TEST_F(HostContactTest, AnotherBuildIsCopiedToo) {
  options_.muster = {};  // the engine reads the file
  std::filesystem::copy_file("/bin/echo", options_.muster_path, std::filesystem::copy_options::overwrite_existing);
  size_t builds = 0;
  const auto contact = [&] {
    auto streams = Contact({"a"});
    ASSERT_TRUE(streams.ok()) << streams.status();
    EXPECT_EQ(FirstLine(streams->at("a")), "agent --attach job-1 --grace 30");
    builds = PosixFileSystem().ListDirectory(folder_.path() + "/a/.cache/muster/bin")->size();
  };
  contact();
  EXPECT_EQ(builds, 1U);
  std::ofstream(options_.muster_path, std::ios::app) << "x";
  contact();
  EXPECT_EQ(builds, 2U);
  contact();
  EXPECT_EQ(builds, 2U);
}

TEST_F(HostContactTest, WhatIsWrittenToTheStreamReachesTheAgent) {
  auto streams = Contact({"a"});
  ASSERT_TRUE(streams.ok()) << streams.status();
  AgentStream& stream = streams->at("a");
  FirstLine(stream);
  stream.read_already.clear();
  ASSERT_EQ(write(stream.out_fd, "frame\n", 6), 6);
  EXPECT_EQ(FirstLine(stream), "frame");
}

TEST_F(HostContactTest, ABannerIsSkippedAndKept) {
  auto streams = Contact({"chatty"});
  ASSERT_TRUE(streams.ok()) << streams.status();
  EXPECT_EQ(streams->at("chatty").last_words(), " (Welcome to chatty)");
}

TEST_F(HostContactTest, AllHostsThatFailAreNamedTogether) {
  EXPECT_THAT(MessageOf({"denied1", "a", "denied2", "broken"}),
              AllOf(HasSubstr("denied1 denies the login"), HasSubstr("\ndenied2 denies the login"),
                    HasSubstr("\nbroken: its shell exited with 1 before an agent spoke (no shell for you)"),
                    Not(HasSubstr("\na"))));
  EXPECT_EQ(Dialled("denied1"), 1) << "a second time wouldn't help";
}

TEST_F(HostContactTest, ADroppedConnectionIsDialledAgain) {
  ASSERT_TRUE(Contact({"dropped"}).ok());
  EXPECT_EQ(Dialled("dropped"), 3);
}

TEST_F(HostContactTest, AnOldHostGetsNoFile) {
  options_.muster_needs.least_glibc = GlibcVersion{2, 35};
  EXPECT_THAT(MessageOf({"old"}), HasSubstr("old has glibc 2.17, this muster needs 2.35"));
  EXPECT_FALSE(PosixFileSystem().Exists(folder_.path() + "/old/.cache/muster/bin/0123abcd/muster"));
}

TEST_F(HostContactTest, AFullDiskIsNamed) {
  EXPECT_THAT(MessageOf({"full"}), AllOf(HasSubstr("full can't keep a copy of muster ("), HasSubstr("0123abcd")));
}

TEST_F(HostContactTest, PatienceEnds) {
  options_.patience = absl::Milliseconds(1);
  EXPECT_THAT(MessageOf({"silent"}), HasSubstr("silent has no agent after 1ms"));
}

// Its port accepts and says nothing. What is written to ssh meanwhile is in ssh's pipe, and no sign of life.
TEST_F(HostContactTest, PatienceEndsAlsoIfItIsDialledAgainAndAgain) {
  options_.patience = absl::Milliseconds(500);
  EXPECT_THAT(MessageOf({"mute"}), HasSubstr("mute"));
  EXPECT_GT(Dialled("mute"), 1);
}

// Returns how many processes this thread has started that aren't reaped.
size_t Children() {
  std::ifstream list("/proc/thread-self/children");
  return static_cast<size_t>(std::distance(std::istream_iterator<pid_t>(list), {}));
}

// Each ssh waits for a byte before it runs the command, and lives as long as its stream.
TEST_F(HostContactTest, ManyHostsAreDialledEightAtATime) {
  std::vector<std::string> hosts;
  for (int i = 0; i < 20; ++i) hosts.push_back(absl::StrCat("gated", i));
  const std::string path = folder_.path() + "/gate";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const int gate = open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(gate, 0);
  const size_t others = Children();
  std::vector<size_t> dialled;
  after_round_ = [&](size_t streams) {
    dialled.push_back(Children() - others - streams);
    const std::string bytes(hosts.size(), '\n');
    if (dialled.size() > 1) return;
    EXPECT_EQ(write(gate, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  };
  const auto streams = Contact(hosts);
  close(gate);
  ASSERT_TRUE(streams.ok()) << streams.status();
  EXPECT_EQ(streams->size(), hosts.size());
  EXPECT_EQ(dialled.front(), 8U);
  EXPECT_THAT(dialled, Each(Le(8U)));
}

TEST_F(HostContactTest, AMissingSshIsNamed) {
  ssh_.program = "muster-no-such-ssh";
  EXPECT_THAT(MessageOf({"a"}), HasSubstr("muster-no-such-ssh"));
}

}  // namespace
}  // namespace muster::ssh_way_test
