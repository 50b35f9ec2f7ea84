#include "muster/observe/status_server.h"

#include <gmock/gmock.h>
#include <httplib.h>

namespace muster::status_server_test {
namespace {

using ::testing::HasSubstr;

StatusSource Source() {
  return {.title = "worker:<0>",
          .status = [] { return R"({"step":3})"; },
          .text = [](const std::string& status) { return "<text> of " + status; },
          .metrics = [](const std::string&) { return "# TYPE a gauge\na 1\n"; }};
}

int PortOf(const StatusServer& server) { return std::stoi(server.url().substr(server.url().rfind(':') + 1)); }

httplib::Result Get(const StatusServer& server, const std::string& path, const httplib::Headers& headers = {}) {
  httplib::Client client("127.0.0.1", PortOf(server));
  return client.Get(path, headers);
}

class IdleConnection {
 public:
  explicit IdleConnection(int port) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ~IdleConnection() { close(fd_); }
  IdleConnection(const IdleConnection&) = delete;
  IdleConnection& operator=(const IdleConnection&) = delete;

 private:
  const int fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
};

TEST(StatusServerTest, ShowsThePageTheStatusAndTheMetrics) {
  const auto server = StatusServer::Start({}, Source(), "").value();
  EXPECT_THAT(server->url(), ::testing::MatchesRegex("http://127.0.0.1:[0-9]+/"));
  const auto page = Get(*server, "/");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->status, 200);
  EXPECT_THAT(page->body, HasSubstr("<h1>worker:&lt;0&gt;</h1>"));
  EXPECT_THAT(page->body, HasSubstr("&lt;text&gt; of {&quot;step&quot;:3}"));
  const auto status = Get(*server, "/status");
  EXPECT_EQ(status->body, R"({"step":3})");
  EXPECT_EQ(status->get_header_value("Content-Type"), "application/json");
  const auto metrics = Get(*server, "/metrics");
  EXPECT_EQ(metrics->body, "# TYPE a gauge\na 1\n");
  EXPECT_EQ(metrics->get_header_value("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(Get(*server, "/other")->status, 404);
}

TEST(StatusServerTest, WhoCantAnswerNowSaysSo) {
  StatusSource source = Source();
  source.status = [] { return absl::UnavailableError("it is busy"); };
  const auto server = StatusServer::Start({}, std::move(source), "").value();
  const auto metrics = Get(*server, "/metrics");
  EXPECT_EQ(metrics->status, 503);
  EXPECT_EQ(metrics->body, "it is busy\n");
}

TEST(StatusServerTest, APortInUseIsAnErrorThatNamesIt) {
  const auto first = StatusServer::Start({}, Source(), "").value();
  const int port = PortOf(*first);
  const auto second = StatusServer::Start({.port = port}, Source(), "");
  EXPECT_TRUE(absl::IsInvalidArgument(second.status()));
  EXPECT_THAT(second.status().message(), HasSubstr(std::to_string(port)));
}

TEST(StatusServerTest, NothingCanBeChangedThere) {
  const auto server = StatusServer::Start({}, Source(), "").value();
  httplib::Client client("127.0.0.1", PortOf(*server));
  EXPECT_EQ(client.Post("/status", "x", "text/plain")->status, 405);
}

TEST(StatusServerTest, APageOfAnotherSiteInABrowserOfThisHostIsRefused) {
  const auto server = StatusServer::Start({}, Source(), "").value();
  char own[256] = {};
  ASSERT_EQ(gethostname(own, sizeof own - 1), 0);
  for (const std::string& host :
       {std::string("127.0.0.1:9100"), std::string("[::1]"), std::string("LOCALHOST:1"), std::string(own) + ":80"})
    EXPECT_EQ(Get(*server, "/status", {{"Host", host}})->status, 200) << host;
  for (const char* host : {"evil.example", "evil.example:9100", "127.0.0.1.evil.example", "localhost.evil.example"}) {
    const auto refused = Get(*server, "/status", {{"Host", host}});
    EXPECT_EQ(refused->status, 421) << host;
    EXPECT_THAT(refused->body, HasSubstr("localhost"));
  }
}

TEST(StatusServerTest, BeyondThisHostThePageNeedsTheJobToken) {
  const StatusAddress everywhere{.host = "0.0.0.0"};
  const absl::Status refused = StatusServer::Start(everywhere, Source(), "").status();
  EXPECT_TRUE(absl::IsPermissionDenied(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("MUSTER_JOB_TOKEN"));

  const auto server = StatusServer::Start(everywhere, Source(), "a/secret").value();
  for (const char* path : {"/", "/status", "/metrics", "/other", "/status?token=a", "/status?token=a/secret1"}) {
    const auto without = Get(*server, path);
    EXPECT_EQ(without->status, 401) << path;
    EXPECT_THAT(without->body, HasSubstr("Bearer")) << path;
  }
  EXPECT_EQ(Get(*server, "/status", {{"Authorization", "Bearer wrong"}})->status, 401);
  EXPECT_EQ(Get(*server, "/status", {{"Authorization", "Bearer a/secret"}})->status, 200);
  EXPECT_EQ(Get(*server, "/metrics", {{"Authorization", "bearer a/secret"}, {"Host", "node1.cluster"}})->status, 200);
  const auto page = Get(*server, "/?token=a%2Fsecret");
  EXPECT_EQ(page->status, 200);
  EXPECT_THAT(page->body, HasSubstr("href=\"/metrics?token=a%2Fsecret\""));
}

TEST(StatusServerTest, EightIdleConnectionsThatAreRenewedDontKeepItFromAnswering) {
  const auto server = StatusServer::Start({}, Source(), "").value();
  std::vector<std::unique_ptr<IdleConnection>> idle;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 8; ++i) idle.push_back(std::make_unique<IdleConnection>(PortOf(*server)));
    EXPECT_EQ(Get(*server, "/metrics")->status, 200) << round;
  }
}

}  // namespace
}  // namespace muster::status_server_test
