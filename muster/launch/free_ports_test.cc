#include "muster/launch/free_ports.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <set>

namespace muster {
namespace {

// Whether a server could listen on the port, without any option set.
bool CanListen(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  const bool can = bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && listen(fd, 1) == 0;
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

TEST(FreePorts, NoneAreNeeded) { EXPECT_TRUE(FreePorts::Reserve(0).ok()); }

}  // namespace
}  // namespace muster
