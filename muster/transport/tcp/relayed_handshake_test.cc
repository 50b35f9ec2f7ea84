// A program that isn't the job's has a task's port and passes what clients send on to another task. Clients must not
// take it for a server of the job.
#include <fstream>
#include <list>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "muster/transport/testing/tcp_transport_fixture.h"

namespace muster::relayed_handshake_test {
namespace {

using ::testing::HasSubstr;
using Method = ScriptedHandler::Method;

std::string PortOf(const std::string& address) { return address.substr(address.rfind(':') + 1); }

Socket Connected(const std::string& address) {
  const Endpoint endpoint = Resolve(*ParseTcpAddress(address), /*numeric_only=*/true)->front();
  Socket socket(::socket(endpoint.family(), SOCK_STREAM, 0));
  EXPECT_EQ(connect(socket.fd(), endpoint.get(), endpoint.length), 0);
  return socket;
}

// Listens at 127.0.0.1 and passes all bytes on, both ways. Works when it is told to.
class Relay {
 public:
  Relay() {
    const Endpoint any = Resolve(*ParseTcpAddress("127.0.0.1:0"), /*numeric_only=*/true)->front();
    listening_ = Socket(socket(any.family(), SOCK_STREAM | SOCK_NONBLOCK, 0));
    const int on = 1;
    EXPECT_EQ(setsockopt(listening_.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    EXPECT_EQ(bind(listening_.fd(), any.get(), any.length), 0);
    EXPECT_EQ(listen(listening_.fd(), 16), 0);
  }
  std::string address() const { return LocalEndpoint(listening_.fd()).ToString(); }
  void set_target(const std::string& target) { target_ = target; }
  int passed_on() const { return static_cast<int>(pairs_.size()); }

  // Accepts a connection without passing it on yet. Returns whether it has one.
  bool HoldsOne() {
    if (!held_.valid()) held_ = Socket(accept(listening_.fd(), nullptr, nullptr));
    return held_.valid();
  }
  void StopListening() { listening_ = Socket(); }

  void Work() {
    while (listening_.valid() ? HoldsOne() : held_.valid()) pairs_.emplace_back(std::move(held_), Connected(target_));
    for (auto& [client, server] : pairs_) {
      Pass(client, server);
      Pass(server, client);
    }
  }

 private:
  static void Pass(Socket& from, Socket& to) {
    char bytes[4096];
    if (!from.valid() || !to.valid()) return;
    const ssize_t n = recv(from.fd(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (n > 0) {
      EXPECT_EQ(send(to.fd(), bytes, n, MSG_NOSIGNAL), n);
    }
    if (n == 0) to = Socket();
  }

  Socket listening_;
  Socket held_;
  std::string target_;
  std::list<std::pair<Socket, Socket>> pairs_;
};

class RelayedHandshakeTest : public ::testing::Test {
 protected:
  // Serves `address`, as a task whose cluster is `tasks`, and has the relay lead to it.
  void Serve(const std::string& address, TaskAddresses tasks, const std::string& cluster_file = "") {
    const JobToken token{.secret = kSecret, .cluster_file = cluster_file, .tasks = std::move(tasks)};
    serving_ = std::make_unique<TcpTransport>(loop_, token);
    listener_ = serving_->Listen(address, handler_).value();
    relay_.set_target(listener_->address());
  }

  void Dial(const std::string& address) { channel_ = calling_.Connect(address); }

  // Returns what becomes of a call that ends within `patience`, if not before `over`.
  absl::Status Ask(
      absl::Duration patience, const std::function<bool()>& over = [] { return false; }) {
    Request request;
    request.method = Method::kEcho;
    request.deadline = loop_.Now() + patience;
    std::optional<absl::Status> result;
    const Channel::CallId call = channel_->Call(request, [&](absl::StatusOr<Reply> reply) { result = reply.status(); });
    while (!result && !over()) {
      loop_.RunUntil([&] { return result.has_value(); }, loop_.Now() + absl::Milliseconds(1));
      relay_.Work();
    }
    if (!result) channel_->Cancel(call);
    loop_.RunUntil([&] { return result.has_value(); }, absl::InfiniteFuture());
    return *result;
  }

  // Dials twice in vain, and returns what a call is told then whose deadline comes at once.
  absl::Status AskInVain(const std::string& address) {
    Dial(address);
    Ask(absl::Seconds(30), [this] { return relay_.passed_on() >= 2; }).IgnoreError();
    return Ask(absl::Milliseconds(1));
  }
  absl::Status AskForAnswer(const std::string& address) {
    Dial(address);
    return Ask(absl::Seconds(30));
  }

  void ExpectRefused(const absl::Status& status, const std::string& words = "another task of the job answers there") {
    EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
    EXPECT_EQ(handler_.Count("connect"), 0);
    EXPECT_EQ(listener_->stats().accepted, 0);
  }

  static constexpr char kSecret[] = "the token of a job";
  TcpEventLoop loop_;
  ScriptedHandler handler_;
  Relay relay_;
  std::unique_ptr<TcpTransport> serving_;
  std::unique_ptr<Listener> listener_;
  TcpTransport calling_{loop_, {.secret = kSecret}};
  std::unique_ptr<Channel> channel_;
};

TEST_F(RelayedHandshakeTest, AnotherTasksPortLeadsNowhere) {
  Serve("127.0.0.1:0", {.own = "127.0.0.1:1", .others = {"127.0.0.1:2", relay_.address()}});
  ExpectRefused(AskInVain(relay_.address()));
}

TEST_F(RelayedHandshakeTest, APortThatATaskHasLeftLeadsNowhere) {
  const std::string file = ::testing::TempDir() + "/relayed_handshake_cluster";
  std::ofstream(file) << "ps:0 127.0.0.1:1 " << relay_.address() << "\n";
  Serve("127.0.0.1:0", {.own = "127.0.0.1:1"}, file);
  ExpectRefused(AskInVain(relay_.address()));
}

// The name has several addresses, of which the server has one and the stranger another.
TEST_F(RelayedHandshakeTest, TheSamePortAtAnotherAddressOfThisHostLeadsNowhere) {
  const std::string name = absl::StrCat("localhost:", PortOf(relay_.address()));
  Serve(absl::StrCat("127.0.0.2:", PortOf(relay_.address())), {.own = name});
  ExpectRefused(AskInVain(name), "something between passes the connection on");
}

// The stranger had the port before the server, has kept a client's connection and gives the port up.
TEST_F(RelayedHandshakeTest, AConnectionFromBeforeTheServersLifeIsNotPassedOnToIt) {
  const std::string own = relay_.address();
  Dial(own);
  Request request;
  request.method = Method::kEcho;
  request.deadline = loop_.Now() + absl::Seconds(30);
  std::optional<absl::Status> result;
  channel_->Call(request, [&](absl::StatusOr<Reply> reply) { result = reply.status(); });
  while (!relay_.HoldsOne()) loop_.RunUntil([] { return false; }, loop_.Now() + absl::Milliseconds(1));
  relay_.StopListening();
  Serve(own, {.own = own});
  while (!result) {
    loop_.RunUntil([&] { return result.has_value(); }, loop_.Now() + absl::Milliseconds(1));
    relay_.Work();
  }
  EXPECT_EQ(*result, absl::OkStatus()) << "it connects once more, and nobody is between";
  EXPECT_EQ(relay_.passed_on(), 1);
  EXPECT_EQ(listener_->stats().dropped_handshake, 1);
  EXPECT_EQ(listener_->stats().accepted, 1);
}

TEST_F(RelayedHandshakeTest, AProxyOfTheOwnAddressCanBeAllowed) {
  Serve("127.0.0.1:0", {.own = relay_.address(), .allow_proxy = true});
  EXPECT_EQ(AskForAnswer(relay_.address()), absl::OkStatus());
  EXPECT_EQ(relay_.passed_on(), 1);
}

TEST_F(RelayedHandshakeTest, AForwardedPortThatIsNoTasksLeadsToTheServer) {
  Serve("127.0.0.1:0", {.own = "127.0.0.1:1", .others = {"127.0.0.1:2"}});
  EXPECT_EQ(AskForAnswer(relay_.address()), absl::OkStatus());
  EXPECT_EQ(relay_.passed_on(), 1);
}

TEST_F(RelayedHandshakeTest, TheOwnAddressNeedsNoRelay) {
  Serve("127.0.0.1:0", {});
  const std::string own = listener_->address();
  listener_ = nullptr;
  Serve(own, {.own = own, .others = {relay_.address()}});
  EXPECT_EQ(AskForAnswer(own), absl::OkStatus());
}

}  // namespace
}  // namespace muster::relayed_handshake_test
