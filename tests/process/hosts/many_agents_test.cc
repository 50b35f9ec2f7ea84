// Many agents at once, as plain processes of this machine: in place of ssh there is a script that runs the command in a
// /tmp of its own, with a home that all of these hosts share.
#include <gmock/gmock.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "muster/base/files/file_system.h"
#include "muster/base/testing/built_at.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/left_behind.h"
#include "tests/process/testing/process.h"
#include "tests/process/testing/simulated_hosts.h"

namespace muster::many_agents_test {
namespace {

constexpr int kAgents = 64;

// BASE: a folder of the test.
constexpr char kInPlaceOfSsh[] = R"(#!/bin/sh
while [ "$1" != -- ]; do shift; done
export HOME=BASE/home SSH_CONNECTION='127.0.0.1 1 127.0.0.1 22'
mkdir -p "BASE/$2"
exec unshare --mount --propagation private sh -c 'mount --bind "$0" /tmp && exec sh -c "$1"' "BASE/$2" "$3"
)";

// A folder that isn't below /tmp, which is another one for each host.
class FolderBesideTmp {
 public:
  FolderBesideTmp() {
    EXPECT_NE(mkdtemp(path_.data()), nullptr);
    std::filesystem::create_directory(path_ + "/home");
  }
  ~FolderBesideTmp() { std::filesystem::remove_all(path_); }
  FolderBesideTmp(const FolderBesideTmp&) = delete;
  FolderBesideTmp& operator=(const FolderBesideTmp&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/var/tmp/muster_test_XXXXXX";
};

TEST(ManyAgents, SixtyFourRunATaskEachAndAreGoneAfterwards) {
  if (const std::string why = SimulatedHosts::WhyNot(); !why.empty()) GTEST_SKIP() << why;
  const LeftBehind left_behind;
  const FolderBesideTmp folder;
  const std::string ssh = folder.path() + "/ssh";
  std::ofstream(ssh) << absl::StrJoin(std::vector<std::string>(absl::StrSplit(kInPlaceOfSsh, "BASE")), folder.path());
  std::filesystem::permissions(ssh, std::filesystem::perms::owner_all);
  std::vector<std::string> hosts;
  for (int i = 1; i <= kAgents; ++i) hosts.push_back(absl::StrCat("a", i));
  Process run({BinFolder() + "/muster", "run", "--hosts", absl::StrJoin(hosts, ","), "--ps", "0", "--workers",
               absl::StrCat(kAgents), "--", "sh", "-c", "echo here"},
              {.environment = {{"PATH", absl::StrCat(folder.path(), ":", getenv("PATH"))}}, .directory = "/"});
  EXPECT_EQ(run.Wait(), 0) << run.err;
  std::set<std::string> here;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(run.out, '\n', absl::SkipEmpty())))
    here.insert(line);
  EXPECT_EQ(here.size(), kAgents) << run.out << run.err;
  for (const std::string& host : hosts) {
    const std::string agents = absl::StrCat(folder.path(), "/", host, "/muster-", getuid(), "/agents");
    EXPECT_TRUE(std::filesystem::is_directory(agents)) << host;
    for (const auto& left : std::filesystem::directory_iterator(agents))
      EXPECT_FALSE(left.is_directory()) << left.path() << ": "
                                        << PosixFileSystem().ReadFile(left.path().string() + "/log").value_or("no log");
  }
}

}  // namespace
}  // namespace muster::many_agents_test
