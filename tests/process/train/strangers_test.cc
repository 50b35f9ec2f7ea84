// A ps whose port and status page are flooded by idle connections of strangers, with few descriptors: those who belong
// to the job get in, and checkpoints are saved.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <httplib.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "muster/base/check.h"
#include "muster/base/os/descriptor_limit.h"
#include "muster/base/testing/built_at.h"
#include "muster/base/testing/scratch_folder.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/process.h"

namespace muster::strangers_test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using Json = nlohmann::json;

const std::string kMuster = BinFolder() + "/muster";
const std::string kToy = BinFolder() + "/toy_worker";

// Holds that many idle connections to a port, and makes another one for each that is closed.
class Flood {
 public:
  Flood(int port, size_t connections) : port_(port), connections_(connections) {
    RaiseDescriptorLimit();
    MUSTER_CHECK(pipe2(stop_, O_CLOEXEC) == 0);
    thread_ = std::thread([this] { Run(); });
  }
  ~Flood() {
    close(stop_[1]);
    thread_.join();
    close(stop_[0]);
  }
  Flood(const Flood&) = delete;
  Flood& operator=(const Flood&) = delete;

 private:
  int Connect() const {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<uint16_t>(port_));
    if (connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0 || errno == EINPROGRESS) return fd;
    close(fd);
    return -1;
  }
  void Run() {
    std::vector<pollfd> polled = {{stop_[0], POLLIN, 0}};
    for (size_t i = 0; i < connections_; ++i) polled.push_back({Connect(), POLLIN, 0});
    while (poll(polled.data(), polled.size(), -1) >= 0 && polled[0].revents == 0) {
      for (size_t i = 1; i < polled.size(); ++i) {
        if (polled[i].revents == 0) continue;
        close(polled[i].fd);
        polled[i].fd = Connect();
      }
    }
    for (size_t i = 1; i < polled.size(); ++i)
      if (polled[i].fd >= 0) close(polled[i].fd);
  }

  const int port_;
  const size_t connections_;
  int stop_[2] = {-1, -1};
  std::thread thread_;
};

int PortOf(const std::string& address) { return std::stoi(address.substr(address.rfind(':') + 1)); }

// Returns the words of a command that runs another one with at most that many descriptors.
std::vector<std::string> WithDescriptors(int most, const std::vector<std::string>& words) {
  return Joined(
      {"/bin/sh", "-c",
       "ulimit -S -n " + std::to_string(most) + "; ulimit -H -n " + std::to_string(most) + "; exec \"$@\"", "sh"},
      words);
}

TEST(StrangersTest, AFloodOfIdleConnectionsKeepsNobodyOfTheJobOutAndNoCheckpointFromBeingSaved) {
  const ScratchFolder model;
  ByHand cluster(1, 2);
  const ProcessOptions with_token{.environment = {{"MUSTER_JOB_TOKEN", "one job of several"}}};
  Process ps(WithDescriptors(256, Joined({kMuster, "ps"}, cluster.Flags("ps", 0))), with_token);
  ps.WaitForErr("serves at");
  const Flood flood(PortOf(cluster.ps_address(0)), 400);
  const auto toy = [&](int index) {
    return Joined({kToy}, Joined(cluster.Flags("worker", index), {"--steps=1000000000", "--save_steps=100",
                                                                  "--log_steps=100", "--model_dir=" + model.path()}));
  };
  Process chief(toy(0), with_token);
  chief.WaitForErr("loss = ");
  {
    Process killed(toy(1), with_token);
    killed.WaitForErr("loss = ");
    killed.Signal(SIGKILL);
    EXPECT_EQ(killed.Wait(), 128 + SIGKILL);
  }
  Process again(toy(1), with_token);
  again.WaitForErr("loss = ");
  Process status({kMuster, "ps", "--status", cluster.ps_address(0), "--json"}, with_token);
  EXPECT_EQ(status.Wait(), 0) << status.err;
  const Json page = Json::parse(status.out, nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(page.is_object()) << status.out;
  EXPECT_GT(page["dropped_for_room"], 0);
  EXPECT_LE(page["in_handshake"], 64);
  again.Signal(SIGTERM);
  EXPECT_EQ(again.Wait(), 0) << again.err;
  chief.Signal(SIGTERM);
  EXPECT_EQ(chief.Wait(), 0) << chief.err;
  EXPECT_EQ(ps.Wait(), 0) << ps.err;
  EXPECT_THAT(EntriesOf(model.path()), Contains(HasSubstr("model.ckpt-")));
}

TEST(StrangersTest, AFloodedStatusPageAnswers) {
  ByHand cluster(1, 1);
  ServingPs ps(cluster, 0, {"--status_port=0"});
  const size_t url = ps.err.find("http://127.0.0.1:");
  ASSERT_NE(url, std::string::npos) << ps.err;
  const int port = std::stoi(ps.err.substr(url + std::string("http://127.0.0.1:").size()));
  const Flood flood(port, 100);
  httplib::Client client("127.0.0.1", port);
  // The flood comes again as fast as it is turned away, so a connection may be the oldest before it has asked; its user
  // asks again. Without a limit for strangers no try succeeds.
  constexpr int kTries = 10;
  for (int i = 0; i < 50; ++i) {
    auto metrics = client.Get("/metrics");
    for (int tries = 1; !metrics && tries < kTries; ++tries) metrics = client.Get("/metrics");
    ASSERT_TRUE(metrics) << i;
    EXPECT_EQ(metrics->status, 200);
  }
  ps.Signal(SIGTERM);
  ps.Wait();
}

TEST(StrangersTest, AStatusPageForOtherHostsNeedsATokenAndSaysWhatToDo) {
  ByHand cluster(1, 1);
  Process refused(Joined({kMuster, "ps"}, Joined(cluster.Flags("ps", 0), {"--status_port=0.0.0.0:0"})));
  EXPECT_EQ(refused.Wait(), 2) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("MUSTER_JOB_TOKEN"));
}

// The limit of a shell is usually far below what the system allows.
TEST(StrangersTest, AProcessRaisesItsLimitOfDescriptors) {
  ByHand cluster(1, 1);
  Process ps(Joined({"/bin/sh", "-c", "ulimit -S -n 100; exec \"$@\"", "sh", kMuster, "ps"}, cluster.Flags("ps", 0)));
  ps.WaitForErr("serves at");
  std::ifstream limits("/proc/" + std::to_string(ps.pid()) + "/limits");
  std::string line;
  while (std::getline(limits, line) && !line.starts_with("Max open files")) {
  }
  std::istringstream words(line.substr(std::string("Max open files").size()));
  std::string soft, hard;
  words >> soft >> hard;
  EXPECT_EQ(soft, hard) << line;
  EXPECT_NE(soft, "100");
  ps.Signal(SIGTERM);
  ps.Wait();
}

}  // namespace
}  // namespace muster::strangers_test
