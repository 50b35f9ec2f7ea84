#include "muster/observe/http_request.h"

#include <gmock/gmock.h>

namespace muster::http_request_test {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(HttpRequestTest, TakesWhatAStatusPageNeeds) {
  const auto request = ParseHttpRequest(
      "GET /metrics?token=a%2Fb&x=1 HTTP/1.1\r\nHOST: LocalHost:9100\r\nAuthorization:  Bearer abc \r\nAccept: */*");
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->method, "GET");
  EXPECT_EQ(request->path, "/metrics");
  EXPECT_EQ(request->host, "localhost");
  EXPECT_EQ(request->authorization, "Bearer abc");
  EXPECT_EQ(QueryValue(request->query, "token"), "a/b");
  EXPECT_EQ(QueryValue(request->query, "x"), "1");
  EXPECT_EQ(QueryValue(request->query, "y"), std::nullopt);
}

TEST(HttpRequestTest, HostsLoseTheirPorts) {
  const auto host = [](const std::string& value) { return ParseHttpRequest("GET / HTTP/1.1\nHost: " + value)->host; };
  EXPECT_EQ(host("127.0.0.1:80"), "127.0.0.1");
  EXPECT_EQ(host("[::1]:80"), "[::1]");
  EXPECT_EQ(host("[::1]"), "[::1]");
  EXPECT_EQ(host("a.example"), "a.example");
  EXPECT_EQ(host("[::1"), "[::1");
  EXPECT_EQ(ParseHttpRequest("GET / HTTP/1.0")->host, "");
}

TEST(HttpRequestTest, AnythingElseIsNoRequest) {
  for (const char* head : {"", "GET", "GET /", "GET / HTTP/2", "GET http://x/ HTTP/1.1", "M\r\n", "\r\nGET / HTTP/1.1"})
    EXPECT_FALSE(ParseHttpRequest(head).has_value()) << head;
}

TEST(HttpRequestTest, APercentSignAtTheEndIsItself) {
  EXPECT_EQ(QueryValue("token=%", "token"), "%");
  EXPECT_EQ(QueryValue("token=%4", "token"), "%4");
  EXPECT_EQ(QueryValue("token=%41", "token"), "A");
  EXPECT_EQ(QueryValue("token", "token"), std::nullopt);
}

TEST(HttpRequestTest, AnAnswerHasItsLengthAlsoWithoutItsBody) {
  const HttpAnswer answer{.status = 401, .body = "no\n"};
  EXPECT_THAT(EncodeHttpAnswer(answer, true), StartsWith("HTTP/1.1 401 Unauthorized\r\n"));
  EXPECT_THAT(EncodeHttpAnswer(answer, true), HasSubstr("\r\nWWW-Authenticate: Bearer\r\n"));
  EXPECT_THAT(EncodeHttpAnswer(answer, true), EndsWith("\r\n\r\nno\n"));
  EXPECT_THAT(EncodeHttpAnswer(answer, false), HasSubstr("Content-Length: 3\r\n"));
  EXPECT_THAT(EncodeHttpAnswer(answer, false), EndsWith("\r\n\r\n"));
}

}  // namespace
}  // namespace muster::http_request_test
