#include "muster/launch/task_run/code_copy.h"

#include <gmock/gmock.h>

namespace muster::code_copy_test {
namespace {

TEST(CopyTextTest, TheFiveLargestAreShown) {
  ProjectFiles files;
  for (int i = 1; i <= 7; ++i) {
    files.files.push_back({.path = "f" + std::to_string(i), .bytes = i * 1000});
    files.bytes += i * 1000;
  }
  EXPECT_EQ(CopyText(files),
            "code for each host: 7 files, 28.0 KB, of which only what it lacks is copied\n"
            "  7.0 KB  f7\n  6.0 KB  f6\n  5.0 KB  f5\n  4.0 KB  f4\n  3.0 KB  f3\n");
}

TEST(CopyTextTest, WhatHasNoBytesIsNotAmongTheLargest) {
  EXPECT_EQ(CopyText({.files = {{.path = "link", .link_to = "x"}}}),
            "code for each host: 1 file, 0 bytes, of which only what it lacks is copied\n");
}

}  // namespace
}  // namespace muster::code_copy_test
