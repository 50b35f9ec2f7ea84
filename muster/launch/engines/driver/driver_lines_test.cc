#include "muster/launch/engines/driver/driver_lines.h"

#include <gmock/gmock.h>

namespace muster::driver_lines_test {
namespace {

using ::testing::HasSubstr;

TEST(DriverLinesTest, AStartIsAnObjectOnOneLine) {
  EXPECT_EQ(LineOf({.host = "h1", .number = 3, .arguments = {"agent", "--serve"}, .rendezvous = "a\nb\n"}),
            "{\"arguments\":[\"agent\",\"--serve\"],\"number\":3,\"rendezvous\":\"a\\nb\\n\","
            "\"start\":\"h1\"}\n");
}

TEST(DriverLinesTest, TheOthersToo) {
  EXPECT_EQ(RendezvousLine("a\n"), "{\"rendezvous\":\"a\\n\"}\n");
  EXPECT_EQ(EndStartLine(7), "{\"end\":7}\n");
  EXPECT_EQ(EndAllLine(false), "{\"end_all\":\"gently\"}\n");
  EXPECT_EQ(EndAllLine(true), "{\"end_all\":\"at once\"}\n");
}

TEST(DriverLinesTest, NewsAreAboutAStart) {
  using Kind = DriverNews::Kind;
  EXPECT_EQ(*ParseDriverNews(R"({"number": 3, "line": "can't reach\tit"})"),
            (DriverNews{.kind = Kind::kLine, .number = 3, .text = "can't reach\\x09it"}));
  EXPECT_EQ(*ParseDriverNews(R"({"number": 3, "waits": "for a node", "more": 1})"),
            (DriverNews{.kind = Kind::kWaits, .number = 3, .text = "for a node"}));
  EXPECT_EQ(*ParseDriverNews(R"({"number": 0, "ended": "all"})"),
            (DriverNews{.kind = Kind::kEnded, .number = kAllStarts, .text = "all"}));
  EXPECT_EQ(*ParseDriverNews(R"({"number": 4, "ended": "its JVM has died", "for_ever": true})"),
            (DriverNews{.kind = Kind::kEnded, .number = 4, .text = "its JVM has died", .for_ever = true}));
  EXPECT_FALSE(ParseDriverNews(R"({"number": 4, "ended": "its node died", "for_ever": "no"})")->for_ever);
}

TEST(DriverLinesTest, WhatADriverDoesntSayIsRefused) {
  for (const char* line : {"", "nothing", "[]", "{}", R"({"number": 3})", R"({"number": -1, "line": "x"})",
                           R"({"number": "3", "line": "x"})", R"({"line": "x"})", R"({"number": 3, "ended": true})"})
    EXPECT_THAT(std::string(ParseDriverNews(line).status().message()), HasSubstr("something else than expected"))
        << line;
}

}  // namespace
}  // namespace muster::driver_lines_test
