#include "muster/launch/engines/listening/node_addresses.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <string>
#include <vector>

#include "muster/transport/io/socket.h"

namespace muster::node_addresses_test {
namespace {

using ::testing::Contains, ::testing::IsEmpty, ::testing::Not;

// Returns what a listener on all addresses, IPv6 and IPv4, is told of a peer that connects to its loopback address.
std::string PeerOfDualStack(int family) {
  const Socket server(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int no = 0;
  sockaddr_in6 any{};
  any.sin6_family = AF_INET6;
  socklen_t size = sizeof any;
  EXPECT_EQ(setsockopt(server.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no), 0);
  EXPECT_EQ(bind(server.fd(), reinterpret_cast<const sockaddr*>(&any), size), 0);
  EXPECT_EQ(listen(server.fd(), 1), 0);
  EXPECT_EQ(getsockname(server.fd(), reinterpret_cast<sockaddr*>(&any), &size), 0);
  const Socket client(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in four{.sin_family = AF_INET, .sin_port = any.sin6_port, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = any.sin6_port;
  six.sin6_addr = in6addr_loopback;
  const bool is_four = family == AF_INET;
  EXPECT_EQ(connect(client.fd(), is_four ? reinterpret_cast<const sockaddr*>(&four) : reinterpret_cast<sockaddr*>(&six),
                    is_four ? sizeof four : sizeof six),
            0);
  return PeerAddress(Socket(accept4(server.fd(), nullptr, nullptr, SOCK_CLOEXEC)).fd());
}

TEST(NodeAddresses, APeerIsNamedByTheAddressOfItsOwnFamily) {
  EXPECT_EQ(PeerOfDualStack(AF_INET), "127.0.0.1") << "not ::ffff:127.0.0.1, which others may not understand";
  EXPECT_EQ(PeerOfDualStack(AF_INET6), "::1");
  EXPECT_EQ(PeerAddress(-1), "");
}

TEST(NodeAddresses, LoopbackIsTheLastResort) {
  for (const char* self : {"127.0.0.1", "::1"}) {
    const std::vector<std::string> addresses = AddressesTowards({self});
    ASSERT_THAT(addresses, Contains(self));
    bool loopback = false;
    for (const std::string& address : addresses) {
      const bool is_loopback = address.starts_with("127.") || address == "::1";
      EXPECT_FALSE(loopback && !is_loopback) << address << " comes after a loopback address";
      loopback = is_loopback;
    }
  }
}

TEST(NodeAddresses, AddressesThatNeedAnInterfaceBesideThemAreLeftOut) {
  const std::vector<std::string> addresses = AddressesTowards({"nowhere.invalid"});
  ASSERT_THAT(addresses, Not(IsEmpty()));
  for (const std::string& address : addresses) EXPECT_FALSE(address.starts_with("fe80:")) << address;
}

}  // namespace
}  // namespace muster::node_addresses_test
