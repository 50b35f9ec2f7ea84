#include "muster/base/net/free_ports.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace muster::free_ports_test {
namespace {

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

// A server that listens as ours do.
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

// Returns whether a server could listen on the port, without any option set.
bool CanListen(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = Loopback(port);
  const bool can = bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 && listen(fd, 1) == 0;
  close(fd);
  return can;
}

// Reserves `count` ports in a row, wherever all of them are free: other runs of this test need some at the same time.
FreePorts TakeRow(uint16_t count) {
  for (int tries = 0; tries < 1000; ++tries) {
    const uint16_t first = FreePorts::Reserve(1)->port(0);  // released again at once
    auto row = FreePorts::Take({.first = first, .count = count});
    if (row.ok()) return *std::move(row);
  }
  ADD_FAILURE() << "no " << count << " free ports in a row";
  return *FreePorts::Reserve(count);
}

TEST(FreePorts, AreDifferentAndHeldUntilReleased) {
  auto ports = FreePorts::Reserve(20).value();
  std::set<uint16_t> numbers;
  for (int i = 0; i < 20; ++i) numbers.insert(ports.port(i));
  EXPECT_EQ(numbers.size(), 20);
  EXPECT_EQ(numbers.count(0), 0);
  EXPECT_FALSE(CanListen(ports.port(3)));
  ports.Release(3);
  EXPECT_TRUE(CanListen(ports.port(3)));
  EXPECT_FALSE(CanListen(ports.port(4)));
}

// A server that is being started, or restarted, doesn't hold its port.
TEST(FreePorts, AReleasedPortIsNobodyElsesUntilItsRunEnds) {
  const PortRange row = {.first = TakeRow(3).port(0), .count = 3};
  const auto port_of = [](const absl::StatusOr<FreePorts>& ports) { return ports.ok() ? ports->port(0) : 0; };
  {
    auto run = FreePorts::Reserve(3, row).value();
    for (int i = 0; i < 3; ++i) run.Release(i);
    for (int i = 0; i < 20; ++i) {
      const uint16_t port = port_of(FreePorts::Reserve(1, row));
      for (int j = 0; j < 3; ++j) EXPECT_NE(port, run.port(j));
    }
  }
  const uint16_t port = port_of(FreePorts::Reserve(1, row));
  EXPECT_GE(port, row.first);
  EXPECT_LT(port, row.first + 3);
}

TEST(FreePorts, OfARangeAreOnlyThose) {
  const PortRange row = {.first = TakeRow(3).port(0), .count = 3};
  const Listening other(row.first);
  EXPECT_EQ(FreePorts::Reserve(3, row).status().message(),
            absl::StrCat("too few ports of ", row.first, "-", row.first + 2,
                         " are free (2 of 3); accepted is a wider range"));
  const auto two = FreePorts::Reserve(2, row).value();
  EXPECT_EQ(two.port(0) + two.port(1), 2 * row.first + 3);
  const absl::Status none = FreePorts::Reserve(1, row).status();
  EXPECT_TRUE(absl::IsResourceExhausted(none));
  EXPECT_EQ(none.message(),
            absl::StrCat("no port of ", row.first, "-", row.first + 2, " is free; accepted is a wider range"));
}

TEST(FreePorts, ThoseThatAreNamedAreTakenUnlessOneIsInUse) {
  uint16_t first = 0, middle = 0, last = 0;
  {
    const FreePorts row = TakeRow(3);
    first = row.port(0);
    middle = first + 1;
    last = first + 2;
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(row.port(i), first + i);
      EXPECT_FALSE(CanListen(row.port(i)));
    }
    const auto again = FreePorts::Take({.first = last, .count = 2});
    EXPECT_EQ(again.status().message(), absl::StrCat("port ", last, " is in use")) << "another run has it";
  }
  const Listening other(middle);
  const auto ports = FreePorts::Take({.first = first, .count = 3});
  EXPECT_TRUE(absl::IsInvalidArgument(ports.status()));
  EXPECT_EQ(ports.status().message(), absl::StrCat("port ", middle, " is in use"));
}

// A run may be started again as soon as it has ended: its pages have just closed connections.
TEST(FreePorts, ANamedOneMayHaveBeenInUseUntilNow) {
  const uint16_t port = TakeRow(1).port(0);
  {
    const Listening server(port);
    const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = Loopback(port);
    ASSERT_EQ(connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    close(accept(server.fd, nullptr, nullptr));  // closes first: its end stays in TIME_WAIT
    char nothing;
    EXPECT_EQ(read(client, &nothing, 1), 0);
    close(client);
  }
  EXPECT_FALSE(CanListen(port));
  EXPECT_TRUE(FreePorts::Take({.first = port, .count = 1}).ok());
}

// Returns whether a server without any option set could listen on the port of another loopback address.
bool CanListenAt(const char* ipv4, uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(port);
  EXPECT_EQ(inet_pton(AF_INET, ipv4, &address.sin_addr), 1);
  const bool can = bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 && listen(fd, 1) == 0;
  close(fd);
  return can;
}

TEST(FreePorts, AreHeldAtTheGivenAddress) {
  const auto ports = FreePorts::Reserve(1, std::nullopt, "127.0.0.2").value();
  EXPECT_FALSE(CanListenAt("127.0.0.2", ports.port(0)));
  EXPECT_TRUE(CanListenAt("127.0.0.1", ports.port(0)));
}

TEST(FreePorts, AreHeldAtEveryAddressIfTheGivenOneIsNotThisMachines) {
  for (const std::string address : {"192.0.2.7", "2001:db8::7", "trainer-ps-0.jobs.svc", "", "fe80::1", "::"}) {
    const auto ports = FreePorts::Reserve(1, {}, address);
    ASSERT_TRUE(ports.ok()) << address << ": " << ports.status();
    EXPECT_FALSE(CanListenAt("127.0.0.1", ports->port(0))) << address;
    EXPECT_FALSE(CanListenAt("127.0.0.2", ports->port(0))) << address;
    const Listening server(ports->port(0));  // ours set SO_REUSEADDR
  }
}

TEST(FreePorts, NoneAreNeeded) { EXPECT_TRUE(FreePorts::Reserve(0).ok()); }

}  // namespace
}  // namespace muster::free_ports_test
