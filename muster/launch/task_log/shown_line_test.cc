#include "muster/launch/task_log/shown_line.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"

namespace muster::shown_line_test {
namespace {

using namespace std::string_literals;

const absl::Time kWhen = absl::FromUnixMicros(1769844226123456);  // 2026-01-31T07:23:46.123456Z

std::string Shown(const std::string& text, bool color = false) {
  const std::string shown = ShownLine("4", 0, {.when = kWhen, .kind = LogKind::kStdout, .text = text}, color);
  EXPECT_EQ(shown.substr(0, 4), "4 | ");
  return shown.substr(4);
}

TEST(ShownLine, AState) {
  const LogLineRecord line = {.when = kWhen, .kind = LogKind::kState, .text = "CREATED"};
  EXPECT_EQ(ShownLine("4.worker.1", 0, line, false), "4.worker.1 | [2026-01-31T07:23:46Z] --> CREATED");
}

TEST(ShownLine, NamesAreFilledUpToTheLongest) {
  const LogLineRecord line = {.when = kWhen, .kind = LogKind::kState, .text = "PENDING"};
  EXPECT_EQ(ShownLine("4.build", 13, line, false), "4.build       | [2026-01-31T07:23:46Z] --> PENDING");
  EXPECT_EQ(ShownLine("4.3.worker.10", 13, {.kind = LogKind::kStderr, .text = "x"}, false), "4.3.worker.10 | x");
  EXPECT_EQ(ShownLine("4.3.worker.10", 4, {.kind = LogKind::kMuster, .text = "x"}, false), "4.3.worker.10 | x");
}

struct Case {
  std::string text;
  std::string shown;
};

TEST(ShownLine, ControlsAndWhatIsNoUtf8AreSpelledOut) {
  const Case cases[] = {
      {"", ""},
      {"loss 0.5\tθ̃ ← 1, 日本, 🚀", "loss 0.5\tθ̃ ← 1, 日本, 🚀"},
      {"a\0b"s, "a\\x00b"},
      {"bell\a back\b del\x7f", "bell\\x07 back\\x08 del\\x7f"},
      {"\x1b[2J\x1b]0;title\x07", "\\x1b[2J\\x1b]0;title\\x07"},
      {"\x1b", "\\x1b"},
      {"\x1b[", "\\x1b["},
      {"\x1b[12", "\\x1b[12"},
      // The end of a line that was cut within a character, and the start of the next.
      {"caf\xC3", "caf\\xc3"},
      {"\xA9 noir", "\\xa9 noir"},
      {"\xE2\x82", "\\xe2\\x82"},
      {"\xF0\x9F\x9A|", "\\xf0\\x9f\\x9a|"},
      // Overlong forms, surrogates, above U+10FFFF, invalid first bytes.
      {"\xC0\x80", "\\xc0\\x80"},
      {"\xE0\x80\xAF", "\\xe0\\x80\\xaf"},
      {"\xED\xA0\x80", "\\xed\\xa0\\x80"},
      {"\xF0\x80\x80\x80", "\\xf0\\x80\\x80\\x80"},
      {"\xF4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
      {"\xFF\xFE", "\\xff\\xfe"},
      // The greatest of each length, and the first after the surrogates.
      {"\xDF\xBF\xEF\xBF\xBF\xF4\x8F\xBF\xBF\xEE\x80\x80", "\xDF\xBF\xEF\xBF\xBF\xF4\x8F\xBF\xBF\xEE\x80\x80"},
      // C1: a terminal may take U+009B for ESC [.
      {"\xC2\x9B\x32J", "\\xc2\\x9b2J"},
      {"\xC2\xA0", "\xC2\xA0"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(Shown(c.text), c.shown);
    EXPECT_EQ(Shown(c.text, true), c.shown);
  }
}

TEST(ShownLine, ColoursStayOrGo) {
  EXPECT_EQ(Shown("\x1b[1;31mred\x1b[0m plain"), "red plain");
  EXPECT_EQ(Shown("\x1b[38;5;208mX"), "X");
  EXPECT_EQ(Shown("\x1b[1;31mred", true), "\x1b[1;31mred\x1b[0m");
  EXPECT_EQ(Shown("plain", true), "plain");
}

TEST(ShownLine, AProgressBarIsWhatStoodLast) {
  EXPECT_EQ(Shown(" 10%\r 20%\r100%"), "100%");
  EXPECT_EQ(Shown(" 10%\r100%\r"), "100%");
  EXPECT_EQ(Shown("dos\r"), "dos");
  EXPECT_EQ(Shown("\r\r"), "");
}

TEST(JsonLine, HasEverythingAndIsAlwaysJson) {
  EXPECT_EQ(
      JsonLine("4.worker.1", {.when = kWhen, .kind = LogKind::kStdout, .text = "a \"b\"\t\x1b[1m"}),
      R"({"id":"4.worker.1","time":"2026-01-31T07:23:46.123456Z","stream":"stdout","text":"a \"b\"\t\u001b[1m"})");
  const auto stream = [](LogKind kind) {
    return nlohmann::json::parse(JsonLine("4", {.when = kWhen, .kind = kind, .text = "x"}))["stream"];
  };
  EXPECT_EQ(stream(LogKind::kStderr), "stderr");
  EXPECT_EQ(stream(LogKind::kState), "state");
  EXPECT_EQ(stream(LogKind::kMuster), "muster");
  for (int first = 0; first < 256; ++first) {
    const std::string text =
        absl::StrCat(std::string(1, static_cast<char>(first)), "\xE2\x82 \xFF", std::string(1, '\0'));
    const std::string line = JsonLine("4", {.when = kWhen, .kind = LogKind::kStdout, .text = text});
    EXPECT_TRUE(nlohmann::json::accept(line)) << line;
    EXPECT_EQ(line.find('\n'), std::string::npos);
  }
}

TEST(ShownLine, StatesAreShownThatPeopleWaitFor) {
  const auto shown = [](std::string_view task, std::string_view state) {
    return IsShown({.task = task, .kind = LogKind::kState, .text = state});
  };
  for (const char* end : {"FINISHED", "FAILED", "KILLED"})
    EXPECT_TRUE(shown("worker.1", end) && shown("experiment", end));
  EXPECT_TRUE(shown("experiment", "CREATED") && shown("3.experiment", "CREATED"));
  EXPECT_TRUE(shown("worker.1", "RUNNING"));
  EXPECT_TRUE(shown("build", "BUILDING"));
  for (const char* step : {"PENDING", "STARTING"}) EXPECT_FALSE(shown("worker.1", step) || shown("experiment", step));
  EXPECT_FALSE(shown("worker.1", "CREATED") || shown("experiment", "RUNNING"));
  EXPECT_TRUE(IsShown({.task = "worker.1", .kind = LogKind::kStdout, .text = "PENDING"}));
}

}  // namespace
}  // namespace muster::shown_line_test
