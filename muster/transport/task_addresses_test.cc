#include "muster/transport/task_addresses.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

const TaskAddresses kTasks{.own = "a:1", .others = {"b:1", "c:1"}};
constexpr char kMoved[] = "ps:0 a:1 a:9\nworker:0 d:1 b:1 e:1\n";

TEST(TaskAddressesTest, TheOwnAddressIsMeant) {
  EXPECT_FALSE(IsElsewhere(kTasks, "", "a:1"));
  EXPECT_FALSE(IsElsewhere(kTasks, kMoved, "a:1"));
}

TEST(TaskAddressesTest, AddressesOfOtherTasksAreElsewhere) {
  EXPECT_TRUE(IsElsewhere(kTasks, "", "b:1"));
  EXPECT_TRUE(IsElsewhere(kTasks, "", "c:1"));
  EXPECT_TRUE(IsElsewhere(kTasks, kMoved, "d:1")) << "where it is since it has moved";
  EXPECT_TRUE(IsElsewhere(kTasks, kMoved, "e:1")) << "where it was in between";
}

TEST(TaskAddressesTest, WhereThisTaskWasBeforeIsElsewhere) { EXPECT_TRUE(IsElsewhere(kTasks, kMoved, "a:9")); }

TEST(TaskAddressesTest, AnUnknownAddressIsNobodys) {
  EXPECT_FALSE(IsElsewhere(kTasks, kMoved, "tunnel:7"));
  EXPECT_FALSE(IsElsewhere(kTasks, kMoved, ""));
  EXPECT_FALSE(IsElsewhere({}, kMoved, "d:1")) << "a process alone";
}

}  // namespace
}  // namespace muster
