#include "muster/launch/engines/kubernetes/yaml/yaml_text.h"

#include <gmock/gmock.h>

#include "muster/launch/spec/yaml_tree.h"

namespace muster::yaml_text_test {
namespace {

void ExpectReadAsItWas(const std::string& text) {
  OrderedJson tree;
  tree["list"].push_back(text);
  tree["key"] = text;
  const auto read = ParseYaml(YamlText(tree), "text");
  ASSERT_TRUE(read.ok()) << read.status() << "\n" << YamlText(tree);
  const YamlNode* key = read->Find("key");
  ASSERT_NE(key, nullptr);
  EXPECT_EQ(key->kind, YamlKind::kScalar) << text;
  EXPECT_EQ(key->text, text) << YamlText(tree);
  EXPECT_EQ(read->Find("list")->items.at(0).text, text) << YamlText(tree);
}

TEST(YamlTextTest, MapsAndListsAreBlocks) {
  OrderedJson tree;
  tree["b"] = 1;
  tree["a"]["list"] = {"x", {{"k", true}, {"l", {1, 2}}}};
  tree["a"]["none"] = OrderedJson::object();
  tree["empty"] = OrderedJson::array();
  EXPECT_EQ(YamlText(tree), R"(b: 1
a:
  list:
  - x
  - k: true
    l:
    - 1
    - 2
  none: {}
empty: []
)");
}

TEST(YamlTextTest, ATextOfSeveralLinesIsALiteralBlock) {
  OrderedJson tree;
  tree["cut"] = "a\n\n  b";
  tree["list"] = OrderedJson::array({"exec c\n", "d"});
  EXPECT_EQ(YamlText(tree), "cut: |-\n  a\n\n    b\nlist:\n- |\n  exec c\n- d\n");
}

// Parsers refuse them as they are. The halves of a character beyond U+FFFF that JSON would have are refused, too.
TEST(YamlTextTest, WhatYamlHasOnlyAsAnEscapeIsOne) {
  const std::string escaped = "a\x7f\xc2\x80\xc2\x85\xc2\x9f\xe2\x80\xa8\xe2\x80\xa9\xef\xbb\xbf\x01";
  EXPECT_EQ(YamlText(escaped), "\"a\\x7f\\x80\\x85\\x9f\\u2028\\u2029\\ufeff\\u0001\"\n");
  const std::string plain = "\xc3\xbc\xc2\xa0\xf0\x9f\x98\x80";
  EXPECT_EQ(YamlText(plain), "\"\xc3\xbc\xc2\xa0\xf0\x9f\x98\x80\"\n");
  ExpectReadAsItWas(escaped);
  ExpectReadAsItWas(plain);
}

TEST(YamlTextTest, ADocumentMayBeOneValue) {
  EXPECT_EQ(YamlText("x"), "x\n");
  EXPECT_EQ(YamlText(OrderedJson::object()), "{}\n");
}

TEST(YamlTextTest, EveryTextIsReadAsItWas) {
  for (const std::string text : {"",         "plain",  "/a/b",        "a:b",        "a:",
                                 "a: b",     "# no",   "x #y",        "yes",        "No",
                                 "null",     "~",      "1",           "1.5",        "0x1",
                                 "-",        "- a",    "it's",        "\"q\"",      "it's \"both\"",
                                 "\\",       "a\\b",   " lead",       "trail ",     "{a}",
                                 "[a]",      "&a",     "*a",          "!a",         "%a",
                                 "@a",       "`a",     "tab\there",   "line\nline", "line\n",
                                 "line\n\n", "\nline", " line\nline", "bell\a",     "\xc3\xa4",
                                 "a=b",      "a,b"})
    ExpectReadAsItWas(text);
}

}  // namespace
}  // namespace muster::yaml_text_test
