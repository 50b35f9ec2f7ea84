#include "muster/launch/backends/local/oom_kills.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "muster/base/testing/scratch_folder.h"

namespace muster::oom_kills_test {
namespace {

// A machine with counters that are set by hand.
class OomKillsTest : public ::testing::Test {
 protected:
  OomKillsTest() {
    std::filesystem::create_directories(scratch_ / "self");
    std::filesystem::create_directories(scratch_ / "groups/job");
    SetMachine(5);
  }
  void SetMachine(int kills) { scratch_.Write("vmstat", absl::StrCat("nr_free_pages 7\noom_kill ", kills, "\n")); }
  void MountTwo() {
    scratch_.Write("self/mountinfo", absl::StrCat("31 23 0:28 / ", scratch_ / "groups", " rw - cgroup2 cgroup2 rw\n"));
    scratch_.Write("self/cgroup", "0::/job\n");
    SetGroupOfTwo(2);
  }
  void SetGroupOfTwo(int kills) {
    scratch_.Write("groups/job/memory.events", absl::StrCat("max 71\noom 4\noom_kill ", kills, "\n"));
  }

  const ScratchFolder scratch_;
  SimulatedClock clock_;
};

TEST_F(OomKillsTest, AreCountedInTheProcesssOwnControlGroup) {
  MountTwo();
  const OomKills kills(clock_, scratch_.path());
  EXPECT_FALSE(kills.WereThereLately(false));
  SetMachine(6);  // a process of others
  EXPECT_FALSE(kills.WereThereLately(false));
  EXPECT_TRUE(kills.WereThereLately(true)) << "the process was in another group";
  SetGroupOfTwo(3);
  EXPECT_TRUE(kills.WereThereLately(false));
}

TEST_F(OomKillsTest, AreCountedInTheGroupOfVersionOne) {
  scratch_.Write("self/mountinfo", absl::StrCat("30 23 0:27 / /nowhere rw - cgroup cgroup rw,cpu\n31 23 0:28 / ",
                                                scratch_ / "groups", " rw - cgroup cgroup rw,memory\n"));
  scratch_.Write("self/cgroup", "5:cpu,cpuacct:/\n4:memory:/job\n0::/\n");
  const auto set = [&](int count) {
    scratch_.Write("groups/job/memory.oom_control",
                   absl::StrCat("oom_kill_disable 0\nunder_oom 0\noom_kill ", count, "\n"));
  };
  set(0);
  const OomKills kills(clock_, scratch_.path());
  EXPECT_FALSE(kills.WereThereLately(false));
  set(1);
  EXPECT_TRUE(kills.WereThereLately(false));
}

TEST_F(OomKillsTest, WithoutAGroupThatCountsTheMachinesAreTheHint) {
  const OomKills kills(clock_, scratch_.path());
  EXPECT_FALSE(kills.WereThereLately(false));
  SetMachine(6);
  EXPECT_TRUE(kills.WereThereLately(false));
}

TEST_F(OomKillsTest, AreForgotten) {
  MountTwo();
  OomKills kills(clock_, scratch_.path());
  SetGroupOfTwo(3);
  clock_.Advance(OomKills::kLately);
  kills.OnTime();
  EXPECT_TRUE(kills.WereThereLately(false));
  clock_.Advance(OomKills::kLately);
  kills.OnTime();
  EXPECT_FALSE(kills.WereThereLately(false));
}

}  // namespace
}  // namespace muster::oom_kills_test
