#include "muster/launch/free_ports.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <set>

namespace muster {
namespace {

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

// A server, as ours are.
struct Listening {
  explicit Listening(uint16_t port) : fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    const sockaddr_in address = Loopback(port);
    EXPECT_EQ(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(fd, 1), 0);
  }
  ~Listening() { close(fd); }
  const int fd;
};

// Whether a server could listen on the port, without any option set.
bool CanListen(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = Loopback(port);
  const bool can = bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 && listen(fd, 1) == 0;
  close(fd);
  return can;
}

TEST(FreePorts, AreDifferentAndHeldUntilReleased) {
  auto ports = FreePorts::Reserve(20);
  ASSERT_TRUE(ports.ok()) << ports.status();
  std::set<uint16_t> numbers;
  for (int i = 0; i < 20; ++i) numbers.insert(ports->port(i));
  EXPECT_EQ(numbers.size(), 20);
  EXPECT_EQ(numbers.count(0), 0);
  EXPECT_FALSE(CanListen(ports->port(3)));
  ports->Release(3);
  EXPECT_TRUE(CanListen(ports->port(3)));
  EXPECT_FALSE(CanListen(ports->port(4)));
}

// A server that is being started, or started again, has no hold on its port.
TEST(FreePorts, AReleasedPortIsNobodyElsesUntilItsRunEnds) {
  constexpr PortRange kThree = {.first = 19990, .count = 3};
  const auto port_of = [](const absl::StatusOr<FreePorts>& ports) { return ports.ok() ? ports->port(0) : 0; };
  {
    auto run = FreePorts::Reserve(3, kThree);
    ASSERT_TRUE(run.ok()) << run.status();
    for (int i = 0; i < 3; ++i) run->Release(i);
    for (int i = 0; i < 20; ++i) {
      const uint16_t port = port_of(FreePorts::Reserve(1, kThree));
      for (int j = 0; j < 3; ++j) EXPECT_NE(port, run->port(j));
    }
  }
  const uint16_t port = port_of(FreePorts::Reserve(1, kThree));
  EXPECT_GE(port, 19990);
  EXPECT_LT(port, 19993);
}

TEST(FreePorts, ThoseThatAreNamedAreTakenUnlessOneIsInUse) {
  constexpr PortRange kThree = {.first = 19980, .count = 3};
  {
    const auto ports = FreePorts::Take(kThree);
    ASSERT_TRUE(ports.ok()) << ports.status();
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(ports->port(i), 19980 + i);
      EXPECT_FALSE(CanListen(ports->port(i)));
    }
    const auto again = FreePorts::Take({.first = 19982, .count = 2});
    EXPECT_EQ(again.status().message(), "port 19982 is in use") << "another run has it";
  }
  const Listening other(19981);
  const auto ports = FreePorts::Take(kThree);
  EXPECT_TRUE(absl::IsInvalidArgument(ports.status()));
  EXPECT_EQ(ports.status().message(), "port 19981 is in use");
}

// As a run that is begun again as soon as it has ended: its pages have just closed connections.
TEST(FreePorts, ANamedOneMayHaveBeenInUseUntilNow) {
  constexpr uint16_t kPort = 19985;
  {
    const Listening server(kPort);
    const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = Loopback(kPort);
    ASSERT_EQ(connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    close(accept(server.fd, nullptr, nullptr));  // first: its end stays in TIME_WAIT
    char nothing;
    EXPECT_EQ(read(client, &nothing, 1), 0);
    close(client);
  }
  EXPECT_FALSE(CanListen(kPort));
  EXPECT_TRUE(FreePorts::Take({.first = kPort, .count = 1}).ok());
}

TEST(FreePorts, NoneAreNeeded) { EXPECT_TRUE(FreePorts::Reserve(0).ok()); }

}  // namespace
}  // namespace muster
