#include "muster/transport/io/acceptor.h"

#include <sys/socket.h>

#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "muster/base/net/accept_again.h"
#include "muster/base/testing/no_free_descriptors.h"
#include "muster/transport/io/tcp_address.h"

namespace muster::acceptor_test {
namespace {

class AcceptorTest : public ::testing::Test {
 protected:
  AcceptorTest() {
    const Endpoint any = Resolve(*ParseTcpAddress("127.0.0.1:0"), /*numeric_only=*/true)->front();
    EXPECT_EQ(bind(listening_.fd(), any.get(), any.length), 0);
    EXPECT_EQ(listen(listening_.fd(), 64), 0);
  }
  Socket Client() {
    const Endpoint there = LocalEndpoint(listening_.fd());
    Socket client(socket(AF_INET, SOCK_STREAM, 0));
    EXPECT_EQ(connect(client.fd(), there.get(), there.length), 0);
    return client;
  }
  bool Await(absl::FunctionRef<bool()> done) { return loop_.RunUntil(done, loop_.Now() + absl::Seconds(20)); }

  TcpEventLoop loop_;
  const Socket listening_{socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)};
  std::vector<Socket> accepted_;
  Acceptor acceptor_{loop_, listening_.fd(), [this](Socket socket) { accepted_.push_back(std::move(socket)); }};
};

TEST_F(AcceptorTest, TakesAllWhoCome) {
  const Socket one = Client(), other = Client();
  EXPECT_TRUE(Await([&] { return accepted_.size() == 2; }));
}

TEST_F(AcceptorTest, TakesSeveralInOneTurnOfTheLoopButNotAll) {
  std::vector<Socket> clients;
  for (int i = 0; i < 40; ++i) clients.push_back(Client());
  EXPECT_FALSE(loop_.RunUntil([] { return false; }, absl::InfinitePast()));
  EXPECT_GT(accepted_.size(), 1);
  EXPECT_LT(accepted_.size(), 40);
  EXPECT_TRUE(Await([&] { return accepted_.size() == 40; }));
}

TEST_F(AcceptorTest, WithoutFreeDescriptorsWhoComesWaitsAndTheLoopDoesNotTurnWithoutEnd) {
  const Socket client = Client();
  {
    const NoFreeDescriptors none;
    int handlers = 0;
    EXPECT_FALSE(loop_.RunUntil([&] { return ++handlers == 100; }, loop_.Now() + 3 * kAcceptAgainAfter / 2))
        << "it asks again at once";
    EXPECT_EQ(accepted_.size(), 0);
  }
  EXPECT_TRUE(Await([&] { return accepted_.size() == 1; }));
}

}  // namespace
}  // namespace muster::acceptor_test
