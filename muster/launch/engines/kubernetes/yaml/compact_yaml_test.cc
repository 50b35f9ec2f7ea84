#include "muster/launch/engines/kubernetes/yaml/compact_yaml.h"

#include <gtest/gtest.h>

namespace muster::compact_yaml_test {
namespace {

TEST(CompactYamlTest, MapsAreInTheirOrderAndShortOnesOnOneLine) {
  const OrderedJson value = {{"kind", "Pod"},
                             {"metadata", {{"name", "a-1"}, {"labels", {{"b", "1"}, {"a", "x"}}}}},
                             {"list", OrderedJson::array({{{"name", "v"}, {"empty", OrderedJson::object()}},
                                                          {{"deep", {{"x", {{"z", 1}}}}}, {"last", true}}})},
                             {"words", {"sh", "-c"}},
                             {"none", OrderedJson::array()}};
  EXPECT_EQ(CompactYaml(value), R"(kind: Pod
metadata:
  name: a-1
  labels: {b: "1", a: x}
list:
  - {name: v, empty: {}}
  - deep:
      x: {z: 1}
    last: true
words: [sh, "-c"]
none: []
)");
}

TEST(CompactYamlTest, WhatCouldBeSomethingElseIsQuoted) {
  EXPECT_EQ(CompactYaml(OrderedJson::array({"yes", "No", "1", "", "a b", "a: b", "~", "- x", "#", "true", "x#y", "ü"})),
            "- \"yes\"\n- \"No\"\n- \"1\"\n- \"\"\n- \"a b\"\n- \"a: b\"\n- \"~\"\n- \"- x\"\n- \"#\"\n- \"true\"\n"
            "- \"x#y\"\n- \"\\u00fc\"\n");
  EXPECT_EQ(CompactYaml("x"), "x\n");
  EXPECT_EQ(CompactYaml(OrderedJson::object()), "{}\n");
}

TEST(CompactYamlTest, TextsOfLinesAreBlocks) {
  EXPECT_EQ(CompactYaml({{"script", "one\n\n  two\n"}, {"open", "one\ntwo"}, {"tab", "a\tb\n"}}),
            "script: |\n  one\n\n    two\nopen: \"one\\ntwo\"\ntab: \"a\\tb\\n\"\n");
  EXPECT_EQ(CompactYaml({{"command", {"sh", "-c", "echo\n"}}}), "command:\n  - sh\n  - \"-c\"\n  - |\n    echo\n");
}

TEST(CompactYamlTest, ALongMapHasALineForEachKey) {
  const std::string text(70, 'x');
  EXPECT_EQ(CompactYaml({{"m", {{"a", text}, {"b", text}}}}), "m:\n  a: " + text + "\n  b: " + text + "\n");
}

}  // namespace
}  // namespace muster::compact_yaml_test
