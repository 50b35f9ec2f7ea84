#include "muster/launch/agent_server/agent_server.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/split_mix64.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/launch/testing/agent_client.h"

namespace muster::agent_server_test {
namespace {

using ::testing::ElementsAre, ::testing::IsEmpty, ::testing::StartsWith;

const TaskId kTask{kWorkerJob, 0};
const TaskId kOther{kWorkerJob, 1};

// Turns a hang into a failed test.
constexpr absl::Duration kHang = absl::Minutes(2);

// Copies between two sockets until it has copied a given number of bytes, in both directions together: then it has cut
// the stream, in the middle of whatever it was. Used by the loop's thread.
class CutCable {
 public:
  CutCable(FdLoop& loop, Socket a, Socket b, uint64_t bytes)
      : loop_(loop), left_(bytes), a_{std::move(a)}, b_{std::move(b)} {
    loop_.Watch(a_.socket.fd(), POLLIN, [this](short) { Move(); });
    loop_.Watch(b_.socket.fd(), POLLIN, [this](short) { Move(); });
  }
  ~CutCable() { Cut(); }
  CutCable(const CutCable&) = delete;
  CutCable& operator=(const CutCable&) = delete;

  bool is_cut() const { return !a_.socket.valid(); }

 private:
  struct End {
    Socket socket;
    std::string outgoing;  // to this end
  };

  void Cut() {
    if (is_cut()) return;
    loop_.Forget(a_.socket.fd());
    loop_.Forget(b_.socket.fd());
    a_.socket.Close();
    b_.socket.Close();
  }
  void Move() {
    if (!Copy(a_, b_) || !Copy(b_, a_)) return Cut();
    loop_.SetEvents(a_.socket.fd(), EventsOf(a_, b_));
    loop_.SetEvents(b_.socket.fd(), EventsOf(b_, a_));
  }
  static short EventsOf(const End& end, const End& other) {
    return static_cast<short>((other.outgoing.empty() ? POLLIN : 0) | (end.outgoing.empty() ? 0 : POLLOUT));
  }
  // Returns false at the end, or once it must be cut.
  bool Copy(const End& from, End& to) {
    if (to.outgoing.empty()) {
      std::array<char, 16 << 10> piece;
      const ssize_t got = read(from.socket.fd(), piece.data(), std::min<uint64_t>(piece.size(), left_));
      if (got <= 0) return got < 0 && errno == EAGAIN;
      to.outgoing.assign(piece.data(), static_cast<size_t>(got));
      left_ -= static_cast<uint64_t>(got);
    }
    const ssize_t put = send(to.socket.fd(), to.outgoing.data(), to.outgoing.size(), MSG_NOSIGNAL);
    if (put < 0) return errno == EAGAIN;
    to.outgoing.erase(0, static_cast<size_t>(put));
    return left_ > 0;
  }

  FdLoop& loop_;
  uint64_t left_;
  End a_, b_;
};

// Checks that a stream is the numbers from 1 on, one a line, whatever pieces it comes in.
class CountedLines {
 public:
  void Add(std::string_view bytes) {
    for (const char byte : bytes) {
      if (at_ == next_.size()) {
        next_ = absl::StrCat(++lines_, "\n");
        at_ = 0;
      }
      if (byte != next_[at_++]) ++wrong_;
    }
  }
  uint64_t lines() const { return lines_; }
  uint64_t wrong() const { return wrong_; }  // bytes

 private:
  uint64_t lines_ = 0;
  std::string next_;
  size_t at_ = 0;
  uint64_t wrong_ = 0;
};

class AgentServerTest : public ::testing::Test {
 protected:
  AgentServerTest() { signal(SIGPIPE, SIG_IGN); }

  void StartAgent(const Clock& clock = BootClock()) {
    AgentFolder locked = Folder();
    ASSERT_EQ(locked.Lock(kHang), absl::OkStatus());
    place_ = AgentServer::Open(std::move(locked)).value();
    const AgentServerOptions options = {.job = "job",
                                        .address = "h1",
                                        .supervisor_in_job = supervisor_in_job_,
                                        .backend = {.environment = {"PATH=/usr/bin:/bin"}},
                                        .clock = &clock};
    auto keeper = AgentServer::ForkKeeper("job", *place_, [](std::unique_ptr<Keeper>) { return 1; });
    ASSERT_EQ(keeper.status(), absl::OkStatus());
    auto server = AgentServer::Start(options, *place_, *std::move(keeper), loop_);
    ASSERT_EQ(server.status(), absl::OkStatus());
    server_ = *std::move(server);
  }
  AgentFolder Folder() const { return AgentFolder::Open("job", scratch_.path()).value(); }
  Socket Connected() const {
    Socket connection = Folder().Connect().value();
    fcntl(connection.fd(), F_SETFL, O_NONBLOCK);
    return connection;
  }
  void Dial(AgentClient& client) {
    client.HangUp();
    stream_ = Connected();
    client.Dial(stream_.fd(), stream_.fd());
  }
  void Round() {
    loop_.RunOnce(RealClock().Now() + absl::Milliseconds(10));
    if (server_) server_->OnTime();
    client_.OnTime();
  }
  template <typename Done>
  void RunUntil(Done done) {
    const absl::Time give_up = RealClock().Now() + kHang;
    while (!done() && RealClock().Now() < give_up) Round();
    ASSERT_TRUE(done());
  }
  CommandId Shell(const TaskId& task, const std::string& script) {
    return client_.link.Launch({.task = task, .arguments = {"sh", "-c", script}}).value();
  }
  void RunToExit(const CommandId& launch) {
    RunUntil([&] { return client_.exits.contains(launch); });
  }
  void StopAgent() {
    client_.link.Stop().value();
    RunUntil([&] { return client_.stopped.has_value() && server_->done(); });
  }

  bool supervisor_in_job_ = false;
  const ScratchFolder scratch_;
  FdLoop loop_{RealClock()};
  std::optional<AgentServer::Place> place_;
  std::unique_ptr<AgentServer> server_;
  Socket stream_;
  AgentClient client_{loop_, "job"};
};

TEST_F(AgentServerTest, ATaskRunsFromItsLaunchToItsEnd) {
  StartAgent();
  Dial(client_);
  const CommandId launch = Shell(kTask, "echo hello; echo trouble >&2; exit 3");
  RunToExit(launch);
  EXPECT_GT(client_.started[launch], 0);
  EXPECT_EQ(client_.out[launch], "hello\n");
  EXPECT_EQ(client_.err[launch], "trouble\n");
  EXPECT_EQ(client_.exits[launch], ExitStatus{.code = 3});
  StopAgent();
  EXPECT_EQ(client_.stopped, 0U);
  EXPECT_FALSE(scratch_.Has(absl::StrCat("muster-", geteuid(), "/agents/job")));
  EXPECT_THAT(client_.mistakes, IsEmpty());
}

TEST_F(AgentServerTest, TasksKnowWhereTheAddressesAre) {
  StartAgent();
  Dial(client_);
  const CommandId reserve = client_.link.Reserve({.task = kTask, .ports = {0}}).value();
  client_.link.WriteHosts("worker:0 h1:1\n").value();
  const CommandId launch = Shell(kTask, "cat $MUSTER_CLUSTER_FILE");
  RunToExit(launch);
  EXPECT_EQ(client_.out[launch], "worker:0 h1:1\n") << client_.err[launch];
  EXPECT_THAT(client_.reserved[reserve], ElementsAre(StartsWith("h1:")));
}

TEST_F(AgentServerTest, StopEndsWhatIsLeftBehind) {
  StartAgent();
  Dial(client_);
  // The one that stays waits in the shell itself, for a writer: a process in the middle of exec can't be recognised.
  const std::string there = scratch_ / "there", fifo = scratch_ / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const CommandId launch =
      Shell(kTask, absl::StrCat("setsid sh -c 'echo >", there, "; read never <", fifo, "' >/dev/null 2>&1 & ",
                                "until [ -e ", there, " ]; do sleep 0.01; done"));
  RunToExit(launch);
  const CommandId runs = Shell(kOther, "sleep 1000");
  StopAgent();
  EXPECT_EQ(client_.exits[runs], ExitStatus{.signal = SIGKILL});
  EXPECT_EQ(client_.stopped, 1U);
}

TEST_F(AgentServerTest, UsageComesWhileTasksRun) {
  StartAgent();
  Dial(client_);
  const CommandId launch = Shell(kTask, "while :; do :; done");
  RunUntil([&] { return !client_.usage.empty() && client_.usage[0].cpu_micros > 0; });
  EXPECT_EQ(client_.usage[0].launch, launch);
  EXPECT_GT(client_.usage[0].resident_bytes, 0);
}

TEST_F(AgentServerTest, ANewerSupervisorTakesOver) {
  StartAgent();
  Dial(client_);
  const CommandId launch = Shell(kTask, "echo one; exec sleep 1000");
  RunUntil([&] { return client_.out[launch] == "one\n"; });
  const Socket stream = Connected();
  AgentClient next(loop_, "job", 2);
  next.Dial(stream.fd(), stream.fd());
  RunUntil([&] {
    next.OnTime();
    return next.attached > 0 && !client_.connected();
  });
  ASSERT_EQ(next.held.size(), 1U);
  EXPECT_EQ(next.held[0].launch, launch);
  EXPECT_GT(next.held[0].pid, 0);
  Dial(client_);
  RunUntil([&] {
    next.OnTime();
    return client_.link.refused().has_value() && !client_.connected();
  });
  EXPECT_EQ(client_.link.refused()->reason, Refusal::kNewerSupervisor);
  next.HangUp();
}

TEST_F(AgentServerTest, OnceTheGraceIsOverTasksAreAskedThenKilled) {
  SimulatedClock clock;
  StartAgent(clock);
  Dial(client_);
  const CommandId gentle = Shell(kTask, absl::StrCat("trap 'echo asked >", scratch_ / "asked",
                                                     "; exit' TERM; echo up; while :; do sleep 0.01; done"));
  const CommandId stubborn = Shell(kOther, "trap '' TERM; echo up; while :; do sleep 0.01; done");
  RunUntil([&] { return client_.out[gentle] == "up\n" && client_.out[stubborn] == "up\n"; });
  const pid_t pid = static_cast<pid_t>(client_.started[stubborn]);
  clock.Advance(absl::Seconds(29));
  client_.HangUp();
  for (int i = 0; i < 5; ++i) Round();
  EXPECT_FALSE(server_->ending());
  clock.Advance(absl::Seconds(2));
  RunUntil([&] { return server_->ending() && scratch_.Read("asked") == "asked\n"; });
  EXPECT_EQ(kill(pid, 0), 0);
  EXPECT_FALSE(server_->done());
  clock.Advance(absl::Seconds(3));
  RunUntil([&] { return server_->done(); });
  EXPECT_NE(kill(pid, 0), 0);
  EXPECT_TRUE(absl::IsNotFound(Folder().Connect().status()));
  server_.reset();
  place_.reset();
  EXPECT_EQ(Folder().Lock(absl::ZeroDuration()), absl::OkStatus()) << "the folder is free again";
}

TEST_F(AgentServerTest, EndNowEndsTasksThatAreToldToEnd) {
  StartAgent();
  Dial(client_);
  const CommandId launch = Shell(kTask, "echo up; sleep 1000");
  RunUntil([&] { return client_.out[launch] == "up\n"; });
  server_->EndNow();
  RunUntil([&] { return server_->done() && !client_.connected(); });
}

TEST_F(AgentServerTest, ASignalOfTheHostsOwnEndsTheTasks) {
  StartAgent();
  Dial(client_);
  const CommandId launch = Shell(kTask, "echo up; sleep 1000");
  RunUntil([&] { return client_.out[launch] == "up\n"; });
  server_->OnSignal();
  EXPECT_TRUE(server_->ending());
  RunUntil([&] { return server_->done() && !client_.connected(); });
}

TEST_F(AgentServerTest, ASupervisorInTheSameJobEndsTheTasksAtTheFirstSignal) {
  supervisor_in_job_ = true;
  StartAgent();
  Dial(client_);
  const CommandId launch = Shell(kTask, "echo up; sleep 1000");
  RunUntil([&] { return client_.out[launch] == "up\n"; });
  server_->OnSignal();
  EXPECT_FALSE(server_->ending());
  server_->OnSignal();
  EXPECT_TRUE(server_->ending());
  RunUntil([&] { return server_->done() && !client_.connected(); });
}

// As Slurm signals all processes of a step.
TEST_F(AgentServerTest, ATaskThatEndsWellAtASignalToAllOfItsJobHasNotFinished) {
  supervisor_in_job_ = true;
  StartAgent();
  Dial(client_);
  const CommandId launch = Shell(kTask, "trap 'exit 0' TERM; echo up; while :; do sleep 1000 & wait; done");
  RunUntil([&] { return client_.out[launch] == "up\n"; });
  server_->OnSignal();
  client_.link.End(launch, EndMode::kGently).value();
  RunUntil([&] { return client_.exits.contains(launch); });
  EXPECT_EQ(client_.exits[launch], ExitStatus{.at_signal = true});
}

TEST_F(AgentServerTest, AnotherJobsStreamDoesNotPass) {
  StartAgent();
  const Socket stream = Connected();
  AgentClient other(loop_, "other-job");
  other.Dial(stream.fd(), stream.fd());
  RunUntil([&] { return !other.connected(); });
  EXPECT_TRUE(absl::IsPermissionDenied(other.why_ended)) << other.why_ended;
}

TEST_F(AgentServerTest, StreamsThatOnlyWaitMakeRoom) {
  StartAgent();
  Dial(client_);
  RunUntil([&] { return client_.attached == 1; });
  std::vector<Socket> waiting;
  const auto is_closed = [&](size_t index) {
    pollfd stream = {waiting[index].fd(), POLLIN, 0};
    return poll(&stream, 1, 0) == 1 && (stream.revents & POLLHUP) != 0;
  };
  for (int i = 0; i < 9; ++i) waiting.push_back(Connected());
  RunUntil([&] { return is_closed(0); });
  for (size_t i = 1; i < waiting.size(); ++i) EXPECT_FALSE(is_closed(i)) << i;
  EXPECT_TRUE(client_.connected());
}

// Starts a process of another user that connects, and writes "closed" to `result` if its stream ends without a word.
void ConnectAsAnotherUser(const std::string& path, int result) {
  if (fork() != 0) return;  // the agent's backend waits for it
  dup2(result, 3);
  close_range(4, ~0U, 0);  // the pipe of the agent's guard, too, which waits for its end
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  std::string word = "not connected";
  char byte;
  if (setgid(65534) == 0 && setuid(65534) == 0 &&
      connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    word = read(fd, &byte, 1) == 0 ? "closed" : "heard";
  _exit(write(3, word.data(), word.size()) > 0 ? 0 : 1);
}

// The folder keeps other users out; here it is opened to them.
TEST_F(AgentServerTest, AnotherUserIsTurnedAway) {
  if (geteuid() != 0) GTEST_SKIP() << "only the superuser can become another user";
  StartAgent();
  const std::string own = absl::StrCat("muster-", geteuid());
  for (const std::string& path : {std::string(), own, own + "/agents", own + "/agents/job"})
    ASSERT_EQ(chmod((scratch_ / path).c_str(), 0711), 0);
  const std::string path = scratch_ / (own + "/agents/job/socket");
  ASSERT_EQ(chmod(path.c_str(), 0777), 0);
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  const Socket reading(ends[0]), writing(ends[1]);
  ConnectAsAnotherUser(path, writing.fd());
  std::array<char, 20> word{};
  RunUntil([&] { return word[0] != 0 || read(reading.fd(), word.data(), word.size() - 1) > 0; });
  EXPECT_STREQ(word.data(), "closed");
}

// The stream is cut at random bytes while two tasks write as fast as they can and others come and go.
TEST_F(AgentServerTest, AThousandCutsLoseNothingAndDoubleNothing) {
  constexpr int kCuts = 1000;
  constexpr uint64_t kLinesOfCut = 50;  // at least, on average
  constexpr uint64_t kSeed = 1;
  StartAgent();
  SplitMix64 random(kSeed);
  std::map<CommandId, CountedLines> lines;
  client_.on_output = [&](const CommandId& launch, std::string_view bytes) { lines[launch].Add(bytes); };
  std::vector<CommandId> writers, short_tasks;
  for (const TaskId& task : {kTask, kOther})
    writers.push_back(Shell(task, absl::StrCat("echo x >>", scratch_ / task.ToString(), "; exec seq 1 1000000000")));
  std::unique_ptr<CutCable> cable;
  const absl::Time give_up = RealClock().Now() + kHang;
  for (int cuts = 0; cuts < kCuts;) {
    ASSERT_LT(RealClock().Now(), give_up) << "after " << cuts << " cuts";
    Round();
    if (cable && !cable->is_cut()) continue;
    if (client_.connected() && cable) continue;  // it will have read the end in the next round
    if (cable) ++cuts;
    // Half of the cuts come within the handshake and the first frames.
    const uint64_t bytes = 1 + random.Below(random.Below(2) == 0 ? 600 : 120'000);
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    cable = std::make_unique<CutCable>(loop_, Socket(ends[1]), Connected(), bytes);
    client_.HangUp();
    stream_ = Socket(ends[0]);
    client_.Dial(stream_.fd(), stream_.fd());
    if (cuts % 20 != 0) continue;
    const TaskId task{kWorkerJob, 2 + cuts};
    short_tasks.push_back(Shell(task, absl::StrCat("echo x >>", scratch_ / task.ToString(), "; echo 1")));
  }
  cable.reset();
  Dial(client_);
  for (const CommandId& launch : writers) client_.link.End(launch, EndMode::kGently).value();
  for (const CommandId& launch : writers) RunToExit(launch);
  for (const CommandId& launch : short_tasks) RunToExit(launch);
  for (const auto& [launch, counted] : lines) EXPECT_EQ(counted.wrong(), 0U) << launch.ToString();
  for (const CommandId& launch : short_tasks) EXPECT_EQ(lines[launch].lines(), 1U) << launch.ToString();
  // How fast they come is the bench's; here a cut is in the midst of lines, however slow the machine is.
  uint64_t all = 0;
  for (const CommandId& launch : writers) {
    EXPECT_GT(lines[launch].lines(), 1000U);
    all += lines[launch].lines();
  }
  EXPECT_GE(all, kLinesOfCut * kCuts);
  RecordProperty("lines", static_cast<int>(all));
  EXPECT_EQ(scratch_.Read(kTask.ToString()), "x\n") << "started once";
  for (int cuts = 0; cuts < kCuts; cuts += 20)
    EXPECT_EQ(scratch_.Read(TaskId{kWorkerJob, 2 + cuts}.ToString()), "x\n") << cuts;
  EXPECT_THAT(client_.mistakes, IsEmpty());
  StopAgent();
}

}  // namespace
}  // namespace muster::agent_server_test
