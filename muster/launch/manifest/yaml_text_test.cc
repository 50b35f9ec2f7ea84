#include "muster/launch/manifest/yaml_text.h"

#include <gmock/gmock.h>

#include "muster/launch/spec/yaml_tree.h"

namespace muster::yaml_text_test {
namespace {

TEST(YamlTextTest, MapsAndListsAreBlocks) {
  nlohmann::ordered_json tree;
  tree["b"] = 1;
  tree["a"]["list"] = {"x", {{"k", true}, {"l", {1, 2}}}};
  tree["a"]["none"] = nlohmann::ordered_json::object();
  tree["empty"] = nlohmann::ordered_json::array();
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
  nlohmann::ordered_json tree;
  tree["cut"] = "a\n\n  b";
  tree["list"] = nlohmann::ordered_json::array({"exec c\n", "d"});
  EXPECT_EQ(YamlText(tree), "cut: |-\n  a\n\n    b\nlist:\n- |\n  exec c\n- d\n");
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
                                 "a=b",      "a,b"}) {
    nlohmann::ordered_json tree;
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
}

}  // namespace
}  // namespace muster::yaml_text_test
