#include "muster/observe/http_door.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace muster::http_door_test {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;

// A client that does only what the test says. Its waits have a limit, as a safety net.
class Client {
 public:
  explicit Client(const HttpDoor& door) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval patience = {.tv_sec = 20, .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(door.port()));
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  Client(Client&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Client& operator=(Client&&) = delete;
  ~Client() {
    if (fd_ >= 0) close(fd_);
  }
  void Send(const std::string& bytes) const {
    EXPECT_EQ(send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  // Returns all that comes until the other side closes.
  std::string Read() const {
    std::string all;
    char piece[4096];
    for (ssize_t n = 1; n > 0;) {
      n = recv(fd_, piece, sizeof piece, 0);
      if (n > 0) all.append(piece, n);
      EXPECT_FALSE(n < 0 && errno == EAGAIN) << "it isn't closed";
    }
    return all;
  }

 private:
  int fd_;
};

constexpr char kGet[] = "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n";

std::unique_ptr<HttpDoor> OpenDoor(const HttpDoorOptions& options) {
  auto door = HttpDoor::Open({}, options).value();
  door->Serve([](const HttpRequest& request) { return HttpAnswer{.body = request.path + " is here\n"}; });
  return door;
}

// Nothing ends by itself in these tests.
constexpr HttpDoorOptions kPatient = {
    .max_connections = 4, .request_patience = absl::Hours(1), .answer_patience = absl::Hours(1)};

TEST(HttpDoorTest, AnswersAndCloses) {
  const auto door = OpenDoor(kPatient);
  EXPECT_TRUE(door->is_loopback());
  const Client client(*door);
  client.Send("GET /x HTTP");
  client.Send("/1.1\r\n\r\n");
  EXPECT_THAT(client.Read(), EndsWith("\r\n\r\n/x is here\n"));
  const Client head(*door);
  head.Send("HEAD /x HTTP/1.1\r\n\r\n");
  EXPECT_THAT(head.Read(), EndsWith("\r\n\r\n"));
}

TEST(HttpDoorTest, IdleConnectionsThatAreRenewedKeepNobodyOut) {
  const auto door = OpenDoor(kPatient);
  std::vector<Client> idle;
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 8; ++i) idle.emplace_back(*door);
    const Client client(*door);
    client.Send(kGet);
    EXPECT_THAT(client.Read(), StartsWith("HTTP/1.1 200")) << round;
  }
  EXPECT_EQ(idle[0].Read(), "") << "the oldest made room";
}

TEST(HttpDoorTest, AClientThatSendsNothingIsDropped) {
  HttpDoorOptions options = kPatient;
  options.request_patience = absl::Milliseconds(50);
  const auto door = OpenDoor(options);
  const Client silent(*door);
  const Client slow(*door);
  slow.Send("GET /x");
  EXPECT_EQ(silent.Read(), "");
  EXPECT_EQ(slow.Read(), "");
}

TEST(HttpDoorTest, WhatIsNoRequestOrTooLongIsToldSo) {
  HttpDoorOptions options = kPatient;
  options.max_request_bytes = 100;
  const auto door = OpenDoor(options);
  const Client garbage(*door);
  garbage.Send("MUSTER\r\n\r\n");
  EXPECT_THAT(garbage.Read(), StartsWith("HTTP/1.1 400"));
  const Client endless(*door);
  endless.Send("GET /" + std::string(200, 'x'));
  EXPECT_THAT(endless.Read(), StartsWith("HTTP/1.1 431"));
  const Client complete(*door);
  complete.Send("GET /" + std::string(200, 'x') + " HTTP/1.1\r\n\r\n");
  EXPECT_THAT(complete.Read(), StartsWith("HTTP/1.1 431"));
}

TEST(HttpDoorTest, WhileAllWaitForAnswersNobodyIsTakenInAndNobodyIsLost) {
  auto door = HttpDoor::Open({}, kPatient).value();
  std::promise<void> go;
  const std::shared_future<void> may_go = go.get_future().share();
  door->Serve([may_go](const HttpRequest&) {
    may_go.wait();
    return HttpAnswer{.body = "at last\n"};
  });
  std::vector<Client> waiting;
  for (int i = 0; i < 4; ++i) {
    waiting.emplace_back(*door);
    waiting.back().Send(kGet);
  }
  const Client refused(*door);
  EXPECT_EQ(refused.Read(), "");
  go.set_value();
  for (const Client& client : waiting) EXPECT_THAT(client.Read(), EndsWith("at last\n"));
}

TEST(HttpDoorTest, EndsWhileClientsWait) {
  const auto door = OpenDoor(kPatient);
  const Client idle(*door);
}

}  // namespace
}  // namespace muster::http_door_test
