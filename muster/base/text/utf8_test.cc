#include "muster/base/text/utf8.h"

#include <gtest/gtest.h>

namespace muster::utf8_test {
namespace {

TEST(Utf8Test, TextIsText) {
  for (const char* text : {"", "a/b", "Köln", "\xc2\x80", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
                           "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf", "a\xf0\x9f\x98\x80z"})
    EXPECT_TRUE(IsUtf8(text)) << text;
}

TEST(Utf8Test, OtherBytesAreNot) {
  for (const char* bytes :
       {"kn\xf6pfe", "\xff", "\x80", "\xc3", "a\xe2\x82", "\xf0\x9f\x98", "\xc3z", "\xe2\x82z", "\xc0\x80", "\xc1\xbf",
        "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80"})
    EXPECT_FALSE(IsUtf8(bytes)) << bytes;
}

}  // namespace
}  // namespace muster::utf8_test
