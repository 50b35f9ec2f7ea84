#include "muster/launch/hosts/host_list.h"

#include <gmock/gmock.h>

#include <fstream>

#include "muster/base/testing/scratch_folder.h"

namespace muster::host_list_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr;

std::string MessageOf(const absl::StatusOr<std::vector<Host>>& hosts) {
  EXPECT_FALSE(hosts.ok());
  return std::string(hosts.status().message());
}

TEST(HostListTest, HasNamesWithSlotsIfStated) {
  EXPECT_THAT(*ParseHostList("a,b:4,me@c.example:2"),
              ElementsAre(Host{.name = "a"}, Host{.name = "b", .slots = 4}, Host{.name = "me@c.example", .slots = 2}));
}

TEST(HostListTest, BlanksBehindCommasAreIgnored) {
  EXPECT_THAT(*ParseHostList(" a, b:4"), ElementsAre(Host{.name = "a"}, Host{.name = "b", .slots = 4}));
}

TEST(HostListTest, TheColonsOfAnAddressAreNoSlots) {
  EXPECT_THAT(*ParseHostList("fe80::1,[fe80::2]:3"),
              ElementsAre(Host{.name = "fe80::1"}, Host{.name = "[fe80::2]", .slots = 3}));
}

TEST(HostListTest, NamesThatSshWouldTakeForOptionsAreRefused) {
  EXPECT_THAT(MessageOf(ParseHostList("a,-oProxyCommand=x")), HasSubstr("'-oProxyCommand=x' isn't a host's name"));
  EXPECT_THAT(MessageOf(ParseHostList("me@-x")), HasSubstr("'me@-x' isn't"));
  EXPECT_THAT(MessageOf(ParseHostList("a;reboot")), HasSubstr("'a;reboot' isn't"));
}

TEST(HostListTest, SaysWhatIsWrong) {
  EXPECT_THAT(MessageOf(ParseHostList("")), HasSubstr("'' isn't a host's name"));
  EXPECT_THAT(MessageOf(ParseHostList("a,,b")), HasSubstr("'' isn't a host's name"));
  EXPECT_THAT(MessageOf(ParseHostList("a b")), HasSubstr("'a b' has a blank in it; accepted: hosts with commas"));
  EXPECT_THAT(MessageOf(ParseHostList("a,b,a")), HasSubstr("'a' is there twice"));
  EXPECT_THAT(MessageOf(ParseHostList("a:0")), HasSubstr("slots of a is '0'; accepted: 1 to 10000"));
  EXPECT_THAT(MessageOf(ParseHostList("a:many")), HasSubstr("slots of a is 'many'"));
}

TEST(HostFileTest, HasOneHostALine) {
  EXPECT_THAT(
      *ParseHostFile("# the cluster\nh1 slots=2 gpus=1 address=10.0.0.1\n\n  me@h2\t slots=1 # old\r\nh3\n", "hosts"),
      ElementsAre(Host{.name = "h1", .slots = 2, .gpus = 1, .address = "10.0.0.1"}, Host{.name = "me@h2", .slots = 1},
                  Host{.name = "h3"}));
}

TEST(HostFileTest, ListsAllMistakesWithTheirLines) {
  const std::string message =
      MessageOf(ParseHostFile("h1 slot=2\nh2 slots=-1\nh2\nh3 gpus=x\nh2\n-h\nh4 address=-x\n", "f"));
  EXPECT_THAT(message, HasSubstr("f:1: host: 'slot=2' isn't known (nearest: slots)"));
  EXPECT_THAT(message, HasSubstr("f:2: host: slots is '-1'"));
  EXPECT_THAT(message, HasSubstr("f:4: host: gpus is 'x'; accepted: 0 to 10000"));
  EXPECT_THAT(message, HasSubstr("f:5: host: 'h2' is there twice"));
  EXPECT_THAT(message, HasSubstr("f:6: host: '-h' isn't a host's name"));
  EXPECT_THAT(message, HasSubstr("f:7: host: address: '-x' isn't"));
}

TEST(HostFileTest, WithoutHostsIsAMistake) {
  EXPECT_THAT(MessageOf(ParseHostFile("# nothing\n", "f")), HasSubstr("f: has no host"));
}

TEST(HostFileTest, ThatIsMissingIsNeverReplaced) {
  ScratchFolder folder;
  const auto hosts = ReadHostFile(folder.path() + "/hosts");
  EXPECT_TRUE(absl::IsNotFound(hosts.status()));
  EXPECT_THAT(MessageOf(hosts), HasSubstr("/hosts' isn't there; accepted: a file with lines of NAME [slots=N]"));
  std::ofstream(folder.path() + "/hosts") << "h1\n";
  EXPECT_THAT(*ReadHostFile(folder.path() + "/hosts"), ElementsAre(Host{.name = "h1"}));
}

}  // namespace
}  // namespace muster::host_list_test
