// `muster ps` as a user runs it: started, queried, fed with rubbish and ended, next to a real training.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "muster/base/files/file_system.h"
#include "muster/base/testing/built_at.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/transport/frame.h"
#include "muster/transport/handshake.h"
#include "muster/transport/io/tcp_address.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/process.h"
#include "tests/process/testing/update_way_flags.h"

namespace muster::ps_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr;
using Json = nlohmann::json;

const std::vector<std::string> kPs = {BinFolder() + "/muster", "ps"};
const std::string kToken = "the token of one job";
const std::vector<std::string> kToy = {BinFolder() + "/toy_worker"};

Json StatusOf(const std::string& address) {
  Process status(Joined(kPs, {"--status", address, "--json"}));
  EXPECT_EQ(status.Wait(), 0) << status.err;
  const Json page = Json::parse(status.out, nullptr, /*allow_exceptions=*/false);
  EXPECT_TRUE(page.is_object()) << status.out;
  return page;
}

// Asks until `enough` returns true for the page; each question is a request that the ps answers, so nothing sleeps.
template <typename Condition>
Json AskUntil(const std::string& address, Condition enough) {
  const absl::Time give_up = absl::Now() + absl::Minutes(2);
  for (;;) {
    const Json page = StatusOf(address);
    if (!page.is_object() || enough(page)) return page;
    if (absl::Now() > give_up) {
      ADD_FAILURE() << "never came: " << page.dump(1);
      return page;
    }
  }
}

// A socket of a peer that doesn't know the protocol.
class RawPeer {
 public:
  explicit RawPeer(const std::string& address) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const std::vector<std::string> parts = absl::StrSplit(address, ':');
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(std::stoi(parts[1])));
    inet_pton(AF_INET, parts[0].c_str(), &to.sin_addr);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to), 0) << strerror(errno);
  }
  ~RawPeer() { close(fd_); }
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;

  // Sends as much as the ps takes before it hangs up.
  void Send(const std::string& bytes) const { (void)send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  // Waits until the ps has hung up.
  void WaitForEnd() const {
    char buffer[1024];
    while (recv(fd_, buffer, sizeof buffer, 0) > 0) {
    }
  }
  // Proves that it belongs to the job and means the task at `destination`; after that its frames are trusted. Returns
  // why it is refused.
  absl::Status ShakeHands(const std::string& token, const std::string& destination = "") const {
    const ConnectionEnds ends{.client = LocalEndpoint(fd_).ToString(), .server = RemoteEndpoint(fd_).ToString()};
    ClientHandshake handshake({.token = {token}, .destination = {.address = destination, .ends = ends}}, RandomNonce());
    std::string received;
    for (;;) {
      const Handshake::Step step = handshake.Advance(AsBytes(received.data(), received.size()));
      if (!step.status.ok()) return step.status;
      Send(step.to_send);
      if (step.passed) return absl::OkStatus();
      received.erase(0, step.used);
      if (step.used > 0) continue;
      char buffer[1024];
      const ssize_t got = recv(fd_, buffer, sizeof buffer, 0);
      if (got <= 0) return absl::UnavailableError("the ps has hung up");
      received.append(buffer, static_cast<size_t>(got));
    }
  }

 private:
  const int fd_;
};

int64_t ResidentBytes(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    const std::vector<std::string> words = absl::StrSplit(line, absl::ByAnyChar(":\t "), absl::SkipEmpty());
    int64_t kib = 0;
    if (words.size() == 3 && words[0] == "VmRSS" && absl::SimpleAtoi(words[1], &kib)) return kib * 1024;
  }
  return -1;
}

TEST(Ps, IdleIsSmallAndEndsOnASignal) {
  ByHand cluster(1, 1);
  const absl::Time start = absl::Now();
  Process ps(Joined(kPs, cluster.Flags("ps", 0)));
  ps.WaitForErr("ps:0 serves at " + cluster.ps_address(0));
  RecordProperty("serving_after_ms", std::to_string(absl::ToInt64Milliseconds(absl::Now() - start)));
  { RawPeer reaches(cluster.ps_address(0)); }
  const int64_t resident = ResidentBytes(ps.pid());
  RecordProperty("resident_kb", std::to_string(resident / 1000));
  EXPECT_GT(resident, 0);
  EXPECT_LT(resident, 20'000'000);
  ps.Signal(SIGTERM);
  EXPECT_EQ(ps.Wait(), 0) << ps.err;
  EXPECT_THAT(ps.err, HasSubstr("training has ended: shut down: a signal"));
}

// The cluster's description has a second worker and an evaluator, and neither is ever started.
TEST(Ps, NobodyWaitsForAnEvaluatorOrForAWorkerThatIsOnlyListed) {
  const std::vector<std::vector<std::string>> ways = {{}, {"--aggregate=2", "--elastic"}, {"--staleness=1"}};
  for (const std::vector<std::string>& way : ways) {
    ByHand cluster(1, 2);
    const auto place = [&cluster](const std::string& job) {
      Json config = Json::parse(cluster.TfConfig(job, 0));
      config["cluster"]["evaluator"] = {"127.0.0.1:1"};
      return ProcessOptions{.environment = {{"TF_CONFIG", config.dump()}}};
    };
    Process ps(kPs, place("ps"));
    ps.WaitForErr(" serves at ");
    Process chief(Joined(kToy, Joined(way, {"--steps=50"})), place("worker"));
    EXPECT_EQ(chief.Wait(), 0) << chief.err;
    ps.WaitForErr("the end waits for worker:1 (never joined)");  // for 20 s, beside the user's next command
    EXPECT_THAT(ps.err, testing::Not(HasSubstr("evaluator")));
  }
}

TEST(Ps, StatusShowsATraining) {
  ByHand cluster(2, 2);
  ServingPs ps0(cluster, 0);
  ServingPs ps1(cluster, 1);
  const Json idle = StatusOf(cluster.ps_address(0));
  EXPECT_EQ(idle["state"], "waiting for the chief");
  EXPECT_EQ(idle["variables"], Json::array());
  EXPECT_EQ(idle["clients"][1]["state"], "not joined");

  Process waiting(Joined(kToy, Joined(cluster.Flags("worker", 1), {"--steps=3000", "--log_steps=100000"})));
  waiting.WaitForErr("Waiting for the chief to initialise the model.");
  AskUntil(cluster.ps_address(0),
           [](const Json& page) { return page["clients"][1]["waiting_for"] == "the chief to initialise the model"; });

  Process chief(Joined(kToy, Joined(cluster.Flags("worker", 0), {"--steps=3000"})));
  chief.WaitForErr("loss = ");
  const Json page = AskUntil(cluster.ps_address(0), [](const Json& p) { return p["global_step"] >= 100; });
  EXPECT_EQ(page["task"], "ps:0");
  EXPECT_EQ(page["state"], "ready");
  EXPECT_EQ(page["chief"]["task"], "worker:0");
  EXPECT_EQ(page["rule"], "sgd");
  EXPECT_EQ(page["value_bytes"], 4000);
  EXPECT_EQ(page["variables"],
            Json::parse(R"([{"name":"w","dtype":"float32","shape":[1000],"shard":0,"shards":1,"bytes":4000}])"));
  EXPECT_GE(page["version"], 100);
  EXPECT_GE(page["requests"]["push_pull"], 100) << page["requests"];
  EXPECT_GT(page["bytes_received"], 100 * 4000);
  EXPECT_GT(page["bytes_sent"], 100 * 4000);
  EXPECT_EQ(page["clients"][0]["task"], "worker:0");
  EXPECT_EQ(page["clients"][0]["state"], "alive");
  EXPECT_THAT(page["clients"][0]["where"], HasSubstr("pid " + std::to_string(chief.pid())));
  uint64_t counted = 0;
  for (const auto& pushes : page["staleness"]) counted += pushes.get<uint64_t>();
  EXPECT_EQ(counted, page["version"]);
  EXPECT_EQ(StatusOf(cluster.ps_address(1))["variables"][0]["name"], "b");

  Process table(Joined(kPs, {"--status", cluster.ps_address(0)}));
  EXPECT_EQ(table.Wait(), 0) << table.err;
  for (const char* text : {"ps:0  ready", "global step ", "rule sgd", "values 4.0 kB", "requests\n", "staleness",
                           "worker:0     alive", "w ", "float32[1000]"})
    EXPECT_THAT(table.out, HasSubstr(text));
  EXPECT_EQ(table.err, "");

  EXPECT_EQ(chief.Wait(), 0) << chief.err;
  EXPECT_EQ(waiting.Wait(), 0) << waiting.err;
  EXPECT_EQ(ps0.Wait(), 0) << ps0.err;
  EXPECT_EQ(ps1.Wait(), 0) << ps1.err;
}

// A job that was started by hand without a token is its user's all the same.
TEST(Ps, WithoutATokenTheEmptyKeyOpensNothing) {
  ByHand cluster(1, 1);
  ServingPs ps(cluster, 0);
  RawPeer stranger(cluster.ps_address(0));
  const absl::Status refused = stranger.ShakeHands("");
  EXPECT_TRUE(absl::IsPermissionDenied(refused)) << refused;
  stranger.WaitForEnd();
  EXPECT_EQ(StatusOf(cluster.ps_address(0))["dropped_handshake"], 1);
  ps.Signal(SIGTERM);
  EXPECT_EQ(ps.Wait(), 0) << ps.err;
}

// A program that has the other ps's port can't pass a worker's proof on to this one.
TEST(Ps, WhoMeansAnotherTaskIsRefused) {
  ByHand cluster(2, 1);
  ServingPs ps(cluster, 0, {}, {.environment = {{"MUSTER_JOB_TOKEN", kToken}}});
  const absl::Status elsewhere = RawPeer(cluster.ps_address(0)).ShakeHands(kToken, cluster.ps_address(1));
  EXPECT_TRUE(absl::IsUnavailable(elsewhere)) << elsewhere;
  EXPECT_THAT(std::string(elsewhere.message()), HasSubstr("another task"));
  EXPECT_EQ(RawPeer(cluster.ps_address(0)).ShakeHands(kToken, cluster.ps_address(0)), absl::OkStatus());
  EXPECT_EQ(RawPeer(cluster.ps_address(0)).ShakeHands(kToken, "tunnel:1"), absl::OkStatus());
  ps.Signal(SIGTERM);
  EXPECT_EQ(ps.Wait(), 0) << ps.err;
}

TEST(Ps, WithoutATokenAnotherUserIsRefused) {
  const std::string setpriv = "/usr/bin/setpriv";
  if (geteuid() != 0 || access(setpriv.c_str(), X_OK) != 0)
    GTEST_SKIP() << "needs root and setpriv, to start a process of another user";
  const std::vector<std::string> as_nobody = {setpriv, "--reuid=65534", "--regid=65534", "--clear-groups"};
  if (Process can(Joined(as_nobody, {kPs[0], "ps", "--help"})); can.Wait() != 0)
    GTEST_SKIP() << "another user can't run " << kPs[0] << ": " << can.err;
  const ScratchFolder model;
  model.Write("mine", "untouched");
  ASSERT_EQ(chmod((model / "mine").c_str(), 0600), 0);
  const ScratchFolder theirs;
  ASSERT_EQ(chown(theirs.path().c_str(), 65534, 65534), 0);
  ByHand cluster(1, 1);
  ServingPs ps(cluster, 0, {"--model_dir=" + model.path()});
  const std::string address = cluster.ps_address(0);
  const std::vector<std::string> chief =
      Joined(kToy, Joined(cluster.Flags("worker", 0), {"--model_dir=" + theirs.path(), "--steps=10"}));
  for (const std::vector<std::string>& words :
       {Joined(kPs, {"--shutdown", address}), Joined(kPs, {"--status", address}), chief}) {
    Process stranger(Joined(as_nobody, words));
    EXPECT_EQ(stranger.Wait(), 1) << stranger.err;
    EXPECT_THAT(stranger.err,
                AllOf(HasSubstr(address), HasSubstr("same user on the same host"), HasSubstr("MUSTER_JOB_TOKEN")));
  }
  const Json page = StatusOf(address);  // of the same user
  EXPECT_EQ(page["state"], "waiting for the chief");
  EXPECT_GE(page["dropped_handshake"], 3);
  EXPECT_EQ(PosixFileSystem().ReadFile(model / "mine").value(), "untouched");
  EXPECT_EQ(PosixFileSystem().ListDirectory(model.path())->size(), 1u);
  ps.Signal(SIGTERM);
  EXPECT_EQ(ps.Wait(), 0) << ps.err;
}

class PsTest : public ::testing::TestWithParam<UpdateWay> {};

INSTANTIATE_TEST_SUITE_P(Ways, PsTest, ::testing::ValuesIn(kWholeWays), NameOfWay);

TEST_P(PsTest, ShutdownIsACommandAndEndsTrainingInOrder) {
  ByHand cluster(1, 1);
  ServingPs ps(cluster, 0);
  // Logs every step, so that it is still training when the shutdown comes.
  Process chief(Joined(kToy, Joined(Joined(cluster.Flags("worker", 0), FlagsOf(GetParam())), {"--steps=1000000000"})));
  chief.WaitForErr("loss = ");
  Process shutdown(Joined(kPs, {"--shutdown", cluster.ps_address(0)}));
  EXPECT_EQ(shutdown.Wait(), 0) << shutdown.err;
  EXPECT_EQ(shutdown.out, absl::StrCat("asked the ps at ", cluster.ps_address(0),
                                       " to end: it ends the training of all its workers\n"));
  EXPECT_EQ(chief.Wait(), 0) << chief.err.substr(chief.err.size() - std::min<size_t>(chief.err.size(), 1000));
  // A worker that applies its own updates reads in the ps's memory that training is over; no reason is stored there.
  EXPECT_THAT(chief.err,
              HasSubstr(GetParam().direct() ? "training has ended"
                                            : "training has ended: shut down: asked for by muster ps --shutdown"));
  EXPECT_EQ(ps.Wait(), 0) << ps.err;
}

TEST_P(PsTest, RubbishOnThePortIsDroppedAndCountedWhileTrainingGoesOn) {
  ByHand cluster(1, 1);
  const ProcessOptions with_token{.environment = {{"MUSTER_JOB_TOKEN", kToken}}};
  ServingPs ps(cluster, 0, {}, with_token);
  Process chief(Joined(kToy, Joined(Joined(cluster.Flags("worker", 0), FlagsOf(GetParam())), {"--steps=4000"})),
                with_token);
  chief.WaitForErr("loss = ");

  RawPeer slow(cluster.ps_address(0));  // a slow-loris: the first bytes of a handshake and then nothing
  slow.Send("M");
  RawPeer random(cluster.ps_address(0));
  std::string noise(4096, '\0');
  uint32_t state = 1;
  for (char& byte : noise) byte = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  random.Send(noise);
  random.WaitForEnd();
  RawPeer http(cluster.ps_address(0));
  http.Send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  http.WaitForEnd();
  RawPeer zeros(cluster.ps_address(0));
  zeros.Send(std::string(1 << 16, '\0'));
  zeros.WaitForEnd();
  RawPeer ones(cluster.ps_address(0));
  ones.Send(std::string(1 << 16, '\xff'));
  ones.WaitForEnd();
  RawPeer huge(cluster.ps_address(0));  // belongs to the job, but announces a request with more bytes than exist
  EXPECT_EQ(huge.ShakeHands(kToken), absl::OkStatus());
  FrameHeaderBytes header;
  EncodeFrameHeader({.request_id = 1, .control_bytes = 0xffffffff, .bulk_bytes = uint64_t{1} << 62}, header);
  huge.Send(std::string(reinterpret_cast<const char*>(header.data()), header.size()));
  huge.WaitForEnd();
  slow.WaitForEnd();  // its handshake has taken too long

  // Asks with the job's token: without it the ps refuses.
  Process status(Joined(kPs, {"--status", cluster.ps_address(0), "--json"}), with_token);
  EXPECT_EQ(status.Wait(), 0) << status.err;
  const Json page = Json::parse(status.out);
  EXPECT_EQ(page["dropped_handshake"], 5);
  EXPECT_EQ(page["dropped_malformed"], 1);
  EXPECT_EQ(page["state"], "ready");

  EXPECT_EQ(chief.Wait(), 0);
  EXPECT_THAT(chief.err, HasSubstr("step = 4000"));
  EXPECT_EQ(chief.err.find("trying again"), std::string::npos);
  EXPECT_EQ(ps.Wait(), 0) << ps.err;
}

}  // namespace
}  // namespace muster::ps_test
