// `bench transport`: what the transport costs: round trips, pushes, pulls and push-pulls between two processes, over
// TCP on the loopback device and through shared memory, each beside a plain blocking socket that exchanges the same
// bytes in the same run, turn by turn, and beside memcpy. In shared memory the server leaves pushed bytes where they
// lie, as a ps does. JSON lines on stdout, a table on stderr. gbytes_per_s counts the bytes of the buffer once, like
// memcpy.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/support/rounds.h"
#include "muster/base/check.h"
#include "muster/transport/tcp/tcp_transport.h"

namespace muster {
namespace {

constexpr size_t kLargest = 100 << 20;
constexpr size_t kMessage = 64;  // in a round trip, and before every bulk

enum Op : uint16_t { kRoundTrip = 1, kPush, kPull, kPushPull };

bool Sends(Op op) { return op == kPush || op == kPushPull; }
bool Fetches(Op op) { return op == kPull || op == kPushPull; }

// --- muster ---------------------------------------------------------------------------------------------------------

// Receives into one buffer, or leaves bulk in shared memory, and answers from the buffer.
class BufferHandler final : public RequestHandler {
 public:
  void OnConnect(ConnectionId, const std::string&) override {}
  absl::StatusOr<std::unique_ptr<BulkTarget>> PrepareBulk(const IncomingRequest& request) override {
    return std::make_unique<Target>(MutableByteSpan(buffer_).first(request.bulk_bytes), request.in_shared_memory);
  }
  void Handle(IncomingRequest& request, std::unique_ptr<BulkTarget>, Responder responder) override {
    Segments bulk;
    if (Fetches(static_cast<Op>(request.method))) {
      uint64_t bytes = 0;
      std::memcpy(&bytes, request.control.data(), sizeof(bytes));
      bulk = {ByteSpan(buffer_).first(bytes)};
    }
    responder.Send(request.control, bulk);
  }
  void OnDisconnect(ConnectionId) override { ++gone_; }
  int gone() const { return gone_; }

 private:
  class Target final : public BulkTarget {
   public:
    Target(MutableByteSpan memory, bool stays) : segments_{memory}, stays_(stays) {}
    const MutableSegments& segments() const override { return segments_; }
    bool BorrowsBulk() const override { return stays_; }
    void ReceiveBorrowed(BorrowedBytes bulk) override { borrowed_ = std::move(bulk); }

   private:
    const MutableSegments segments_;
    const bool stays_;
    BorrowedBytes borrowed_;
  };

  std::vector<std::byte> buffer_ = std::vector<std::byte>(kLargest, std::byte{1});
  int gone_ = 0;  // clients that have left
};

[[noreturn]] void ServeMuster(int report) {
  TcpEventLoop loop;
  TcpTransport transport(loop);
  BufferHandler handler;
  auto listener = transport.Listen("127.0.0.1:0", handler);
  MUSTER_CHECK(listener.ok());
  const std::string address = (*listener)->address();
  MUSTER_CHECK(write(report, address.data(), address.size()) == static_cast<ssize_t>(address.size()));
  close(report);
  loop.RunUntil([&] { return handler.gone() == 2; }, absl::InfiniteFuture());
  std::_Exit(0);
}

class MusterClient {
 public:
  MusterClient(const std::string& address, bool shared_memory)
      : transport_(loop_, JobToken{}, TcpOptions{.shared_memory = {.enabled = shared_memory}}),
        channel_(transport_.Connect(address)) {}

  void Exchange(Op op, MutableByteSpan buffer) {
    Request request;
    request.method = op;
    request.control.assign(kMessage, '\0');
    const uint64_t bytes = buffer.size();
    std::memcpy(request.control.data(), &bytes, sizeof(bytes));
    if (Sends(op)) request.bulk = {buffer};
    if (Fetches(op)) request.into = {buffer};
    request.deadline = loop_.Now() + absl::Seconds(60);
    std::optional<absl::StatusOr<Reply>> result;
    channel_->Call(request, [&](absl::StatusOr<Reply> reply) { result = std::move(reply); });
    loop_.RunUntil([&] { return result.has_value(); }, absl::InfiniteFuture());
    if (!result->ok()) {
      std::fprintf(stderr, "bench_transport: %s\n", result->status().ToString().c_str());
      std::exit(1);
    }
  }

 private:
  TcpEventLoop loop_;
  TcpTransport transport_;
  const std::unique_ptr<Channel> channel_;
};

// --- the plain socket -----------------------------------------------------------------------------------------------

void ReceiveAll(int fd, void* to, size_t bytes) {
  for (auto* at = static_cast<char*>(to); bytes > 0;) {
    const ssize_t n = recv(fd, at, bytes, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) std::_Exit(0);  // the other side has ended
    at += n;
    bytes -= n;
  }
}

void SendAll(int fd, iovec message, iovec bulk) {
  iovec vectors[2] = {message, bulk};
  msghdr header{};
  header.msg_iov = vectors;
  header.msg_iovlen = 2;
  for (size_t left = message.iov_len + bulk.iov_len; left > 0;) {
    ssize_t n = sendmsg(fd, &header, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) std::_Exit(0);
    left -= n;
    for (iovec& v : vectors) {
      const size_t part = std::min<size_t>(n, v.iov_len);
      v.iov_base = static_cast<char*>(v.iov_base) + part;
      v.iov_len -= part;
      n -= part;
    }
  }
}

struct PlainMessage {
  uint64_t bytes = 0;
  uint64_t op = 0;
  char rest[kMessage - 16] = {};
};
static_assert(sizeof(PlainMessage) == kMessage);

[[noreturn]] void ServePlain(int listening) {
  const int fd = accept(listening, nullptr, nullptr);
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  std::vector<std::byte> buffer(kLargest, std::byte{1});
  while (true) {
    PlainMessage message;
    ReceiveAll(fd, &message, sizeof(message));
    const Op op = static_cast<Op>(message.op);
    if (Sends(op)) ReceiveAll(fd, buffer.data(), message.bytes);
    SendAll(fd, {&message, sizeof(message)}, {buffer.data(), Fetches(op) ? message.bytes : 0});
  }
}

class PlainClient {
 public:
  explicit PlainClient(const sockaddr_in& address) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    MUSTER_CHECK(connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  ~PlainClient() { close(fd_); }

  void Exchange(Op op, MutableByteSpan buffer) {
    PlainMessage message;
    message.bytes = buffer.size();
    message.op = op;
    SendAll(fd_, {&message, sizeof(message)}, {buffer.data(), Sends(op) ? buffer.size() : 0});
    ReceiveAll(fd_, &message, sizeof(message));
    if (Fetches(op)) ReceiveAll(fd_, buffer.data(), buffer.size());
  }

 private:
  const int fd_;
};

// --- measuring ------------------------------------------------------------------------------------------------------

// Puts clients on one processor and servers on another, if there are two: the scheduler may take seconds to separate a
// pair that it has put on one, which would hit only one of the two compared.
void RunOn(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  if (sysconf(_SC_NPROCESSORS_ONLN) > 1) sched_setaffinity(0, sizeof(set), &set);
}

template <typename Work>
pid_t Fork(const Work& work) {
  const pid_t child = fork();
  MUSTER_CHECK(child >= 0);
  if (child > 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  RunOn(1);
  work();
  std::_Exit(0);
}

struct Servers {
  pid_t plain = 0;
  pid_t muster = 0;
  sockaddr_in plain_address{};
  std::string muster_address;
};

// Must be called before this process has threads.
Servers StartServers() {
  Servers servers;
  const int listening = socket(AF_INET, SOCK_STREAM, 0);
  servers.plain_address.sin_family = AF_INET;
  servers.plain_address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* address = reinterpret_cast<sockaddr*>(&servers.plain_address);
  socklen_t length = sizeof(servers.plain_address);
  MUSTER_CHECK(bind(listening, address, length) == 0 && listen(listening, 1) == 0);
  MUSTER_CHECK(getsockname(listening, address, &length) == 0);
  servers.plain = Fork([&] { ServePlain(listening); });
  close(listening);

  int report[2];
  MUSTER_CHECK(pipe(report) == 0);
  servers.muster = Fork([&] { ServeMuster(report[1]); });
  close(report[1]);
  char text[64];
  const ssize_t n = read(report[0], text, sizeof(text));
  MUSTER_CHECK(n > 0);
  servers.muster_address.assign(text, n);
  close(report[0]);
  return servers;
}

struct Case {
  const char* name;
  Op op;
  size_t bytes;
};

// One way to exchange, and the duration of each exchange.
struct Contender {
  const char* name;
  std::function<void(Op, MutableByteSpan)> exchange;
  std::vector<double> seconds;
};

void Report(const Case& c, const Contender& contender, double plain_seconds, double copy_seconds) {
  const double seconds = bench::Median(contender.seconds);
  const double gigabytes = static_cast<double>(c.bytes) / 1e9;
  std::printf(
      "{\"bench\":\"transport\",\"transport\":\"%s\",\"op\":\"%s\",\"bytes\":%zu,\"seconds\":%.9f,\"plain_seconds\":%."
      "9f,\"gbytes_per_s\":%.4f,\"plain_gbytes_per_s\":%.4f,\"ratio\":%.3f,\"memcpy_gbytes_per_s\":%.2f,"
      "\"ratio_to_memcpy\":%.3f}\n",
      contender.name, c.name, c.bytes, seconds, plain_seconds, gigabytes / seconds, gigabytes / plain_seconds,
      plain_seconds / seconds, gigabytes / copy_seconds, copy_seconds / seconds);
  std::fflush(stdout);
  std::fprintf(stderr, "%-9s %-11s %10zu %12.1f %12.1f %9.3f %9.3f %7.3f %9.1f\n", contender.name, c.name, c.bytes,
               seconds * 1e6, plain_seconds * 1e6, gigabytes / seconds, gigabytes / plain_seconds,
               plain_seconds / seconds, gigabytes / copy_seconds);
}

// The last of `contenders` must be the plain socket.
void Measure(const Case& c, double seconds_per_case, std::vector<Contender> contenders) {
  std::vector<std::byte> buffer(c.bytes, std::byte{1}), copy(c.bytes);
  std::vector<double> copy_seconds;
  for (int i = 0; i < 3; ++i)
    for (const Contender& contender : contenders) contender.exchange(c.op, buffer);
  // In turns, so that whatever else the machine does affects all of them; which one comes first changes, too.
  double spent = 0;
  constexpr int kLeastTurns = 7;
  for (int turn = 0; spent < seconds_per_case || turn < kLeastTurns; ++turn) {
    // Short exchanges come in groups, so that all are measured warm.
    const int run = c.bytes <= (64 << 10) ? 20 : 1;
    for (size_t i = 0; i < contenders.size(); ++i) {
      Contender& contender = contenders[(turn + i) % contenders.size()];
      for (int k = 0; k < run; ++k) {
        contender.seconds.push_back(bench::SecondsOf([&] { contender.exchange(c.op, buffer); }));
        spent += contender.seconds.back();
      }
    }
    copy_seconds.push_back(bench::SecondsOf([&] { std::memcpy(copy.data(), buffer.data(), c.bytes); }));
  }
  const double plain_seconds = bench::Median(contenders.back().seconds);
  for (size_t i = 0; i + 1 < contenders.size(); ++i)
    Report(c, contenders[i], plain_seconds, bench::Median(copy_seconds));
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Round trip, push, pull and push-pull over TCP and through shared memory, beside a plain socket and memcpy");
  double seconds = 1.5;
  app.add_option("--seconds", seconds, "least time for each line")->capture_default_str();
  std::string only;
  app.add_option("--op", only, "only this one: round_trip, push, pull or push_pull");
  size_t bytes = 0;
  app.add_option("--bytes", bytes, "only this size");
  CLI11_PARSE(app, argc, argv);

  const Servers servers = StartServers();
  RunOn(0);
  {
    MusterClient tcp(servers.muster_address, /*shared_memory=*/false);
    MusterClient shared_memory(servers.muster_address, /*shared_memory=*/true);
    PlainClient plain(servers.plain_address);
    const std::vector<Contender> contenders = {
        {"tcp", [&](Op op, MutableByteSpan buffer) { tcp.Exchange(op, buffer); }, {}},
        {"shm", [&](Op op, MutableByteSpan buffer) { shared_memory.Exchange(op, buffer); }, {}},
        {"plain", [&](Op op, MutableByteSpan buffer) { plain.Exchange(op, buffer); }, {}}};
    std::fprintf(stderr, "%-9s %-11s %10s %12s %12s %9s %9s %7s %9s\n", "transport", "op", "bytes", "us", "plain us",
                 "GB/s", "plain", "ratio", "memcpy");
    std::vector<Case> cases = {{"round_trip", kRoundTrip, kMessage}};
    for (size_t size : {size_t{64} << 10, size_t{1} << 20, size_t{16} << 20, kLargest}) {
      cases.push_back({"push", kPush, size});
      cases.push_back({"pull", kPull, size});
      cases.push_back({"push_pull", kPushPull, size});
    }
    for (const Case& c : cases) {
      if ((only.empty() || only == c.name) && (bytes == 0 || bytes == c.bytes)) Measure(c, seconds, contenders);
    }
  }
  for (pid_t child : {servers.plain, servers.muster}) waitpid(child, nullptr, 0);
  return 0;
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) { return muster::Main(argc, argv); }
