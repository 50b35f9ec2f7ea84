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

httplib::Result Get(const StatusServer& server, const std::string& path) {
  httplib::Client client(server.url().substr(0, server.url().size() - 1));
  return client.Get(path);
}

TEST(StatusServerTest, ShowsThePageTheStatusAndTheMetrics) {
  const auto server = StatusServer::Start({}, Source()).value();
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
  const auto server = StatusServer::Start({}, std::move(source)).value();
  const auto metrics = Get(*server, "/metrics");
  EXPECT_EQ(metrics->status, 503);
  EXPECT_EQ(metrics->body, "it is busy\n");
}

TEST(StatusServerTest, APortInUseIsAnErrorThatNamesIt) {
  const auto first = StatusServer::Start({}, Source()).value();
  const std::string url = first->url();
  const int port = std::stoi(url.substr(url.rfind(':') + 1));
  const auto second = StatusServer::Start({.port = port}, Source());
  EXPECT_TRUE(absl::IsInvalidArgument(second.status()));
  EXPECT_THAT(second.status().message(), HasSubstr(std::to_string(port)));
}

}  // namespace
}  // namespace muster::status_server_test
