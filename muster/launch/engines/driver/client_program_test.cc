#include "muster/launch/engines/driver/client_program.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"

namespace muster::client_program_test {
namespace {

using ::testing::HasSubstr;

// Runs the text with a shell in the place of python. Its errors are "KIND: TEXT".
absl::StatusOr<std::string> Ask(std::string_view text, absl::Duration patience, const std::string& shell = "/bin/sh") {
  return RunClientProgram(
      {.system = "Played",
       .text = text,
       .python = shell,
       .environment = {"PATH=/usr/bin:/bin"},
       .missing = "no_played",
       .error_of = [](const std::string& kind,
                      const std::string& why) { return absl::UnknownError(absl::StrCat(kind, ": ", why)); }},
      {"word"}, patience);
}

std::string WhyNot(std::string_view text, const std::string& shell = "/bin/sh") {
  return std::string(Ask(text, absl::Minutes(1), shell).status().message());
}

TEST(ClientProgramTest, ItAnswersWithItsLine) {
  const auto answer = Ask("echo \"{\\\"id\\\": \\\"$1\\\"}\"", absl::Minutes(1));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(*IdInAnswer("Played", *answer), "word");
}

// It may have reached whom it asks: that isn't the same as nobody there.
TEST(ClientProgramTest, OneThatDoesntAnswerIsLateAndNotUnreachable) {
  EXPECT_EQ(Ask("exec sleep 1000", absl::Milliseconds(20)).status().message(), "late: nothing within 20ms");
  EXPECT_EQ(WhyNot("echo '{\"error\": \"unreachable\", \"text\": \"refused\"}'; exit 1"), "unreachable: refused");
}

TEST(ClientProgramTest, OneThatCantBeRunIsMissingAndOneThatBreaksHasFailed) {
  EXPECT_THAT(WhyNot("", "/nonexistent/python"), HasSubstr("no_played: "));
  EXPECT_EQ(WhyNot("echo '{\"error\": 5, \"text\": [1]}'; exit 1"), "?: ?");
  EXPECT_FALSE(IdInAnswer("Played", R"({"id": ""})").ok());
  EXPECT_FALSE(IdInAnswer("Played", "{}").ok());
  EXPECT_EQ(WhyNot("echo oops >&2; exit 3"), "failed: /bin/sh exited with 3: oops");
}

}  // namespace
}  // namespace muster::client_program_test
