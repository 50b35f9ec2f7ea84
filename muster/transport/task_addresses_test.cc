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

const ConnectionEnds kEnds{.client = "10.0.0.2:5000", .server = "10.0.0.1:1"};

TEST(TaskAddressesTest, TheConnectionsEndsAreWhatTheClientHasSigned) {
  const auto reached = [](const std::string& address, const std::string& client, const std::string& server) {
    return WhoIsReached(kTasks, "", {.address = address, .ends = {.client = client, .server = server}}, kEnds);
  };
  EXPECT_EQ(reached("a:1", "10.0.0.2:5000", "10.0.0.1:1"), Reached::kWhoWasMeant);
  EXPECT_EQ(reached("a:1", "10.0.0.2:5001", "10.0.0.1:1"), Reached::kThroughAnother) << "of the same host";
  EXPECT_EQ(reached("a:1", "10.0.0.3:5000", "10.0.0.1:1"), Reached::kThroughAnother);
  EXPECT_EQ(reached("a:1", "10.0.0.2:5000", "10.0.0.9:1"), Reached::kThroughAnother);
  EXPECT_EQ(reached("a:1", "", ""), Reached::kThroughAnother);
  EXPECT_EQ(reached("b:1", "10.0.0.2:5000", "10.0.0.1:1"), Reached::kAnotherTask);
  EXPECT_EQ(reached("tunnel:7", "127.0.0.1:5000", "127.0.0.1:7"), Reached::kWhoWasMeant);
}

TEST(TaskAddressesTest, WhereAProxyIsAllowedOnlyTheAddressCounts) {
  TaskAddresses tasks = kTasks;
  tasks.allow_proxy = true;
  EXPECT_EQ(WhoIsReached(tasks, "", {.address = "a:1", .ends = {.client = "172.17.0.2:9"}}, kEnds),
            Reached::kWhoWasMeant);
  EXPECT_EQ(WhoIsReached(tasks, "", {.address = "b:1"}, kEnds), Reached::kAnotherTask);
}

TEST(TaskAddressesTest, EachHostHasItsOwnNameForAZone) {
  const Destination destination{.address = "a:1", .ends = {.client = "[fe80::2%eth0]:5", .server = "[fe80::1%eth0]:1"}};
  EXPECT_EQ(WhoIsReached(kTasks, "", destination, {.client = "[fe80::2%ib1]:5", .server = "[fe80::1%ib1]:1"}),
            Reached::kWhoWasMeant);
  EXPECT_EQ(WhoIsReached(kTasks, "", destination, {.client = "[fe80::3%ib1]:5", .server = "[fe80::1%ib1]:1"}),
            Reached::kThroughAnother);
}

}  // namespace
}  // namespace muster
