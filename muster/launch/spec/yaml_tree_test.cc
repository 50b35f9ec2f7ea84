#include "muster/launch/spec/yaml_tree.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"

namespace muster::yaml_tree_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::EndsWith, ::testing::HasSubstr, ::testing::Not,
    ::testing::StartsWith;

YamlNode Parsed(const std::string& text) { return ParseYaml(text, "f.yml").value(); }

std::string Mistake(const std::string& text) {
  const auto tree = ParseYaml(text, "f.yml");
  EXPECT_EQ(tree.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(tree.status().message());
}

TEST(YamlTree, KeepsTextKindsAndLines) {
  const YamlNode tree = Parsed("a: 0.10\nb:\n  - 'x'\n  - y\n\nc: {d: 1e-4,\n    e: ~}\nf:\n");
  ASSERT_EQ(tree.kind, YamlKind::kMap);
  EXPECT_THAT(tree.keys, ElementsAre("a", "b", "c", "f"));
  EXPECT_EQ(tree.Find("a")->text, "0.10");
  EXPECT_FALSE(tree.Find("a")->quoted);
  const YamlNode& b = *tree.Find("b");
  ASSERT_EQ(b.kind, YamlKind::kList);
  EXPECT_EQ(b.line, 2);
  EXPECT_TRUE(b.items[0].quoted);
  EXPECT_EQ(b.items[0].line, 3);
  EXPECT_FALSE(b.items[1].quoted);
  EXPECT_EQ(b.items[1].line, 4);
  const YamlNode& c = *tree.Find("c");
  EXPECT_EQ(c.line, 6);
  EXPECT_EQ(c.Find("e")->line, 7);
  EXPECT_EQ(c.Find("e")->kind, YamlKind::kEmpty);
  EXPECT_EQ(tree.Find("f")->kind, YamlKind::kEmpty);
  EXPECT_EQ(tree.Find("g"), nullptr);
  EXPECT_EQ(tree.Find("a")->Find("b"), nullptr);
}

TEST(YamlTree, BlocksAreText) {
  const YamlNode tree = Parsed("folded: >-\n  one\n  two\nkept: |+\n  1\n\nliteral: |\n  1\n");
  EXPECT_EQ(tree.Find("kept")->text, "1\n\n");
  EXPECT_EQ(tree.Find("folded")->text, "one two");
  EXPECT_TRUE(tree.Find("folded")->quoted);
  EXPECT_EQ(tree.Find("literal")->text, "1\n");
  EXPECT_TRUE(tree.Find("literal")->quoted);
}

TEST(YamlTree, KeepsKeysThatAreThereTwice) {
  const YamlNode tree = Parsed("a: 1\nb: 2\na: 3\n");
  EXPECT_THAT(tree.keys, ElementsAre("a", "b", "a"));
  EXPECT_EQ(tree.items[2].text, "3");
  EXPECT_EQ(tree.items[2].line, 3);
  EXPECT_EQ(tree.Find("a")->text, "1");
}

TEST(YamlTree, WritesAliasesOut) {
  const YamlNode tree = Parsed("a: &x {cpus: 2}\nb: *x\n");
  EXPECT_EQ(tree.Find("b")->Find("cpus")->text, "2");
}

TEST(YamlTree, EmptyTextIsAnEmptyNode) {
  EXPECT_EQ(Parsed("").kind, YamlKind::kEmpty);
  EXPECT_EQ(Parsed("# nothing\n").kind, YamlKind::kEmpty);
  EXPECT_EQ(Parsed("---\n").kind, YamlKind::kEmpty);
}

TEST(YamlTree, SaysWhereTheSyntaxIsWrong) {
  EXPECT_THAT(Mistake("a: 1\nb: [1, 2\nc: 3\n"), StartsWith("f.yml:"));
  for (const char* text : {"a: 1\nb: \"never closed\n", "a: 1\nb: \"never closed", "a: 1\nb: 'x\nc: 1\n"})
    EXPECT_THAT(Mistake(text), AllOf(StartsWith("f.yml:"), HasSubstr("isn't YAML: a quote that begins")));
  EXPECT_THAT(Mistake("run: echo a: b\n"), AllOf(StartsWith("f.yml:1: isn't YAML: "), HasSubstr("between quotes")));
  EXPECT_THAT(Mistake("a: 1\n\tb: 2\n"), StartsWith("f.yml:2: isn't YAML: "));
  EXPECT_THAT(Mistake("a: 1\n  b: 2\n"), StartsWith("f.yml:2: isn't YAML: "));
  EXPECT_THAT(Mistake("a: *nobody\n"), StartsWith("f.yml:1: isn't YAML: "));
}

TEST(YamlTree, WrongIndentationIsSaidWithTheLineAndACaret) {
  constexpr char kIndentation[] = ": isn't YAML: the line's indentation fits none of the lines above";
  const auto expect = [&](const std::string& text, int line, const std::string& shown) {
    EXPECT_THAT(Mistake(text), AllOf(StartsWith("f.yml:" + std::to_string(line) + kIndentation), EndsWith(shown),
                                     Not(HasSubstr("quotes"))))
        << text;
  };
  expect("train:\n  framework: any\n   run: x\n", 3, "\n     run: x\n     ^");
  expect("train:\n   framework: any\n  run: x\n", 3, "\n    run: x\n    ^");
  expect("project: a\n train:\n  run: x\n", 2, "\n   train:\n   ^");
  expect("train:\n  run: >-\n    x y\n   z\n", 4, "\n     z\n     ^");
  expect("train:\n  run:\n  - a\n - b\n", 4, "\n   - b\n   ^");
  EXPECT_THAT(Mistake("a: 1\n\tb: 2\n"),
              AllOf(HasSubstr("indentation; indent lines by blanks"), EndsWith("\n   b: 2\n  ^")));
  EXPECT_THAT(Mistake("train:\n  run: echo a: b\n"),
              AllOf(HasSubstr("between quotes"), EndsWith("\n    run: echo a: b\n               ^")));
  EXPECT_THAT(Mistake("a: 1\nrun: x" + std::string(200, 'x') + ": b\n"), Not(HasSubstr("^")));
  EXPECT_THAT(Mistake("a: 1\n b: \x1b[2J\n"), Not(HasSubstr("\x1b"))) << "it reaches a terminal";
}

TEST(YamlTree, KnowsBlocksAndWhereTheyBegin) {
  const YamlNode tree = Parsed("a: >-\n  x\nb: |\n  x\nc: &here >\n  x\nd: \">\"\ne: [x]\nf: *here\ng:\n- >\n  x\n");
  const auto block = [&](const char* key) { return std::pair(tree.Find(key)->block, tree.Find(key)->block_line); };
  EXPECT_EQ(block("a"), std::pair('>', 1));
  EXPECT_EQ(block("b"), std::pair('|', 3));
  EXPECT_EQ(block("c"), std::pair('>', 5));
  EXPECT_EQ(block("d"), std::pair('\0', 0));
  EXPECT_EQ(block("f"), std::pair('>', 5)) << "an alias is written where its anchor is";
  EXPECT_EQ(tree.Find("g")->items[0].block_line, 11);
}

TEST(YamlTree, AdvisesQuotesForTemplatesAtTheBeginning) {
  EXPECT_THAT(Mistake("a: 1\nrun: {{ program }} --x\n"), HasSubstr("must stand in quotes"));
  EXPECT_THAT(Mistake("a: 1\nrun: {{ program }}\n"), AllOf(StartsWith("f.yml:2: "), HasSubstr("must stand in quotes")));
}

TEST(YamlTree, RefusesWhatCouldFillTheMemory) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    absl::StrAppend(&bomb, "a", i, ": &a", i, " [");
    for (int j = 0; j < 10; ++j) absl::StrAppend(&bomb, j == 0 ? "" : ", ", "*a", i - 1);
    absl::StrAppend(&bomb, "]\n");
  }
  EXPECT_THAT(Mistake(bomb), HasSubstr("more than 100000 values"));
  EXPECT_THAT(Mistake("a: &a [*a]\n"), HasSubstr("an alias of a value that contains it"));
  EXPECT_THAT(Mistake("a: " + std::string(100, '[') + std::string(100, ']')), HasSubstr("nested more than 64 deep"));
  EXPECT_THAT(Mistake("a: " + std::string(100'000, '[')), StartsWith("f.yml:1: "));
}

TEST(YamlTree, EndsWhateverComesFirstOrLast) {
  for (const char* text : {",", "]", "}", ", a: 1\n", "a: 1\n, b: 2\n", "{a: 1}]\n", "- a\n)\n,\n", "[:", "{:", "[[:"})
    EXPECT_THAT(Mistake(text), StartsWith("f.yml:")) << text;
}

TEST(YamlTree, RefusesOtherThings) {
  EXPECT_THAT(Mistake("a: 1\n---\nb: 2\n"), StartsWith("f.yml:3: is after the end of the document: a second document"));
  EXPECT_THAT(Mistake("a: 1\n[x]: 2\n"), StartsWith("f.yml:2: a key must be a word"));
  EXPECT_THAT(Mistake(std::string("a: 1\nb: \0\n", 10)), StartsWith("f.yml:2: isn't text"));
}

}  // namespace
}  // namespace muster::yaml_tree_test
