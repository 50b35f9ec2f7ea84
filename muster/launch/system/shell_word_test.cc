#include "muster/launch/system/shell_word.h"

#include <gtest/gtest.h>

namespace muster::shell_word_test {
namespace {

TEST(ShellWord, IsQuotedOnlyIfItMustBe) {
  EXPECT_EQ(ShellWord("a/b_c-d.e:1,2@x+5%"), "a/b_c-d.e:1,2@x+5%");
  EXPECT_EQ(ShellWord("two words"), "'two words'");
  EXPECT_EQ(ShellWord(""), "''");
  EXPECT_EQ(ShellWord("~"), "'~'");
  EXPECT_EQ(ShellWord("it's"), "'it'\\''s'");
  EXPECT_EQ(QuotedWord("plain"), "'plain'");
}

}  // namespace
}  // namespace muster::shell_word_test
