#include "muster/launch/project/ignore_patterns.h"

#include <gtest/gtest.h>

#include <string>

namespace muster::ignore_patterns_test {
namespace {

struct Case {
  const char* patterns;
  const char* path;  // a folder if it ends with '/'
  bool ignored;
};

// Expects what `git check-ignore` says for the same.
constexpr Case kCases[] = {
    {"", "a", false},
    {"*.log", "a.log", true},
    {"*.log", "deep/er/a.log", true},
    {"*.log", "a.log.txt", false},
    {"*.log", "x.log/", true},
    {"*", ".hidden", true},
    {"?.txt", "a.txt", true},
    {"?.txt", "ab.txt", false},
    {"[ab].txt", "b.txt", true},
    {"[!ab].txt", "b.txt", false},
    {"[a-c]?", "b1", true},
    {"data/", "data/", true},
    {"data/", "data", false},
    {"data/", "deep/data/", true},
    {"/data", "data", true},
    {"/data", "deep/data", false},
    {"a/b", "a/b", true},
    {"a/b", "x/a/b", false},
    {"a/*", "a/b", true},
    {"a/*/c", "a/b/c", true},
    {"a/*/c", "a/b/b/c", false},
    {"a*c", "a/c", false},
    {"**/x", "x", true},
    {"**/x", "a/b/x", true},
    {"**/x", "a/xy", false},
    {"a/**", "a/", false},
    {"a/**", "a/b", true},
    {"a/**", "a/b/c", true},
    {"a/**", "b/a/c", false},
    {"a/**/b", "a/b", true},
    {"a/**/b", "a/x/y/b", true},
    {"a/**/b", "a/x/y/c", false},
    {"a/**/b/**/c", "a/b/b/x/c", true},
    {"a/**/b/*/c", "a/b/b/x/c", true},
    {"**/a/**/a/b", "a/a/a/a/a/b", true},
    {"**/a/**/a/b", "a/a/a/a/a/c", false},
    {"*.log\n!keep.log", "keep.log", false},
    {"*.log\n!keep.log", "other.log", true},
    {"!keep.log\n*.log", "keep.log", true},
    {"# a\na", "# a", false},
    {"# a\na", "a", true},
    {"\\#a", "#a", true},
    {"\\!a", "!a", true},
    {"a\\*", "a*", true},
    {"a\\*", "ab", false},
    {"a   ", "a", true},
    {"a\\ ", "a ", true},
    {"a\\ ", "a", false},
    {"a\\\\ ", "a\\", true},
    {"a\r\nb\r\n", "b", true},
    {"\xEF\xBB\xBF"
     "a",
     "a", true},
    {"/", "a", false},
    {"!", "a", false},
    {"\n\n", "a", false},
    {"\xFF\xFE", "\xFF\xFE", true},
    {"[", "a", false},
    {"a\\", "a", false},
};

TEST(IgnorePatterns, FitAsThoseOfGit) {
  for (const Case& each : kCases) {
    std::string path = each.path;
    const bool folder = path.back() == '/';
    if (folder) path.pop_back();
    EXPECT_EQ(IgnorePatterns(each.patterns).Ignores(path, folder), each.ignored)
        << "of \"" << each.patterns << "\": " << each.path;
  }
}

// If all ways to spread the folders were tried, this would take for ever.
TEST(IgnorePatterns, TakeNoTimeHoweverManyStars) {
  std::string pattern;
  std::string path;
  for (int i = 0; i < 200; ++i) pattern += "**/a/";
  for (int i = 0; i < 1000; ++i) path += "a/";
  EXPECT_FALSE(IgnorePatterns(pattern + "b").Ignores(path + "c", false));
  EXPECT_TRUE(IgnorePatterns(pattern + "b").Ignores(path + "b", false));
}

}  // namespace
}  // namespace muster::ignore_patterns_test
