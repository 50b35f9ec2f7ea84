#include "muster/launch/system/shell_word.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace muster::shell_word_test {
namespace {

// Inserts `value` between the other two.
std::string Filled(std::string_view before, std::string_view value, std::string_view behind) {
  ShellText text;
  text.Append(before);
  text.AppendValue(value);
  text.Append(behind);
  return text.text();
}

TEST(ShellWord, IsQuotedOnlyIfItMustBe) {
  EXPECT_EQ(ShellWord("a/b_c-d.e:1,2@x+5%"), "a/b_c-d.e:1,2@x+5%");
  EXPECT_EQ(ShellWord("two words"), "'two words'");
  EXPECT_EQ(ShellWord(""), "''");
  EXPECT_EQ(ShellWord("~"), "'~'");
  EXPECT_EQ(ShellWord("it's"), "'it'\\''s'");
  EXPECT_EQ(QuotedWord("plain"), "'plain'");
}

TEST(ShellText, AValueIsTextInWhateverQuotesItStands) {
  constexpr char kValue[] = "it's $(x) `y` \"z\" \\";
  EXPECT_EQ(Filled("echo ", kValue, ""), "echo 'it'\\''s $(x) `y` \"z\" \\'");
  EXPECT_EQ(Filled("echo 'a ", kValue, "'"), "echo 'a it'\\''s $(x) `y` \"z\" \\'");
  EXPECT_EQ(Filled("echo \"a ", kValue, "\""), "echo \"a it's \\$(x) \\`y\\` \\\"z\\\" \\\\\"");
}

TEST(ShellText, KnowsWhatIsOpen) {
  const auto in_double = [](std::string_view before) {
    return Filled(before, "a $b", "") == std::string(before) + "a \\$b";
  };
  const auto in_single = [](std::string_view before) {
    return Filled(before, "a $b", "") == std::string(before) + "a $b";
  };
  const auto in_none = [](std::string_view before) {
    return Filled(before, "a $b", "") == std::string(before) + "'a $b'";
  };
  for (const char* before :
       {"x \"", "x \"'", "'y' \"", "\"$(cat \"z\")", "\"\\\"", "\"`cat`", "\"(", "\"#", "# it's\n\""})
    EXPECT_TRUE(in_double(before)) << before;
  for (const char* before : {"x '", "x '\"", "\"y\" '", "'\\", "\"$(cat '", "a#'"})
    EXPECT_TRUE(in_single(before)) << before;
  for (const char* before :
       {"", "x ", "'y' ", "\"y\" ", "\\\"", "\\' ", "\"$(cat ", "\"`cat ", "(cd ", "# it's\n", "$( (a) "})
    EXPECT_TRUE(in_none(before)) << before;
}

TEST(ShellText, AValueDoesNotEndAComment) { EXPECT_EQ(Filled("true # ", "a\nb", "\n"), "true # a b\n"); }

}  // namespace
}  // namespace muster::shell_word_test
