#include "muster/cluster/slurm/node_list.h"

#include <gmock/gmock.h>

namespace muster::node_list_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::SizeIs;

std::string NodesMistake(const std::string& text) {
  const auto nodes = ExpandNodeList(text);
  EXPECT_TRUE(absl::IsInvalidArgument(nodes.status())) << text;
  return std::string(nodes.status().message());
}

std::string CountsMistake(const std::string& text) {
  const auto counts = ExpandCounts(text);
  EXPECT_TRUE(absl::IsInvalidArgument(counts.status())) << text;
  return std::string(counts.status().message());
}

TEST(NodeList, Names) {
  EXPECT_THAT(*ExpandNodeList("node1"), ElementsAre("node1"));
  EXPECT_THAT(*ExpandNodeList("node[1-3]"), ElementsAre("node1", "node2", "node3"));
  EXPECT_THAT(*ExpandNodeList("n[1-3,07-09],login1"), ElementsAre("n1", "n2", "n3", "n07", "n08", "n09", "login1"));
  EXPECT_THAT(*ExpandNodeList("gpu-a,gpu_b.site.org"), ElementsAre("gpu-a", "gpu_b.site.org"));
  EXPECT_THAT(*ExpandNodeList("n[08-10]"), ElementsAre("n08", "n09", "n10"));
  EXPECT_THAT(*ExpandNodeList("n[9-11]-ib"), ElementsAre("n9-ib", "n10-ib", "n11-ib"));
  EXPECT_THAT(*ExpandNodeList("r[1-2]n[01-02]"), ElementsAre("r1n01", "r1n02", "r2n01", "r2n02"));
  EXPECT_THAT(*ExpandNodeList("[1-2]"), ElementsAre("1", "2"));
}

TEST(NodeList, WhatIsNoListIsRefusedByName) {
  for (const char* text : {"", ",", "a,", "a,,b"}) EXPECT_THAT(NodesMistake(text), HasSubstr("an empty name"));
  EXPECT_THAT(NodesMistake("n[1-3"), AllOf(HasSubstr("\"n[1-3\""), HasSubstr("isn't closed"), HasSubstr("accepted: ")));
  EXPECT_THAT(NodesMistake("n[]"), HasSubstr("\"\" is not a range"));
  EXPECT_THAT(NodesMistake("n[1-]"), HasSubstr("\"1-\" is not a range"));
  EXPECT_THAT(NodesMistake("n[1-2-3]"), HasSubstr("\"1-2-3\" is not a range"));
  EXPECT_THAT(NodesMistake("n[a-b]"), HasSubstr("is not a range"));
  EXPECT_THAT(NodesMistake("n[[1]]"), HasSubstr("is not a range"));
  EXPECT_THAT(NodesMistake("n[3-1]"), HasSubstr("goes down"));
  EXPECT_THAT(NodesMistake("n1]"), HasSubstr("\"]\" in a name"));
  EXPECT_THAT(NodesMistake("(null)"), HasSubstr("\"(\" in a name"));
  EXPECT_THAT(NodesMistake("a b"), HasSubstr("\" \" in a name"));
}

TEST(NodeList, AShortTextCannotAskForAllMemory) {
  EXPECT_THAT(*ExpandNodeList("n[1-65536]"), SizeIs(kMostSlurmNodes));
  EXPECT_THAT(NodesMistake("n[0-999999999]"), HasSubstr("more than 65536 nodes"));
  EXPECT_THAT(NodesMistake("n[0-9999999999]"), HasSubstr("is not a range"));
  EXPECT_THAT(NodesMistake("n[1-300][1-300]"), HasSubstr("more than 65536 nodes"));
  EXPECT_THAT(NodesMistake("n[1-65536],a"), HasSubstr("more than 65536 nodes"));
  EXPECT_THAT(NodesMistake(std::string(300, 'n')), HasSubstr("more than 253 letters"));
  EXPECT_THAT(NodesMistake(std::string((1 << 20) + 1, ',')), HasSubstr("longer than 1 MiB"));
}

TEST(Counts, OneForEachNode) {
  EXPECT_THAT(*ExpandCounts("3"), ElementsAre(3));
  EXPECT_THAT(*ExpandCounts("4(x2),8"), ElementsAre(4, 4, 8));
  EXPECT_THAT(*ExpandCounts("4,2,1"), ElementsAre(4, 2, 1));
  EXPECT_THAT(*ExpandCounts("1(x65536)"), SizeIs(kMostSlurmNodes));
}

TEST(Counts, WhatIsNoneIsRefusedByName) {
  EXPECT_THAT(CountsMistake("4(x"), AllOf(HasSubstr("counts \"4(x\""), HasSubstr("accepted: ")));
  for (const char* text : {"", "a", "4,", ",4", "4(x)", "4x2", "4(2)", "4(x2)8", "-1", "4(x2", "1 ", "+1"})
    EXPECT_THAT(CountsMistake(text), HasSubstr("is not a count")) << text;
  for (const char* text : {"0", "4(x0)", "4097"}) EXPECT_THAT(CountsMistake(text), HasSubstr("is out of range"));
  EXPECT_THAT(CountsMistake("1(x65537)"), HasSubstr("too many nodes"));
  EXPECT_THAT(CountsMistake("1(x65536),1"), HasSubstr("too many nodes"));
}

}  // namespace
}  // namespace muster::node_list_test
