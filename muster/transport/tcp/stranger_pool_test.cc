#include "muster/transport/tcp/stranger_pool.h"

#include <set>

#include "gtest/gtest.h"

namespace muster::stranger_pool_test {
namespace {

class StrangerPoolTest : public ::testing::Test {
 protected:
  std::optional<uint64_t> WhoMakesRoom(const std::string& address, bool full = false) const {
    return pool_.WhoMakesRoom(address, full, [this](uint64_t id) { return greeted_.count(id) > 0; });
  }

  StrangerPool pool_{4, 2};
  std::set<uint64_t> greeted_;
};

TEST_F(StrangerPoolTest, NobodyGoesWhileThereIsRoom) {
  EXPECT_EQ(WhoMakesRoom("a"), std::nullopt);
  pool_.Add(1, "a");
  EXPECT_EQ(WhoMakesRoom("a"), std::nullopt);
  EXPECT_EQ(WhoMakesRoom("b"), std::nullopt);
  EXPECT_EQ(pool_.size(), 1);
}

TEST_F(StrangerPoolTest, AnAddressWithManyLosesItsOwnOldest) {
  pool_.Add(1, "b");
  pool_.Add(2, "a");
  pool_.Add(3, "a");
  EXPECT_EQ(WhoMakesRoom("a"), 2);
  EXPECT_EQ(WhoMakesRoom("b"), std::nullopt);
  EXPECT_TRUE(pool_.Remove(2));
  EXPECT_FALSE(pool_.Remove(2));
  EXPECT_EQ(WhoMakesRoom("a"), std::nullopt);
}

TEST_F(StrangerPoolTest, AFullPoolLosesItsOldest) {
  pool_.Add(1, "a");
  pool_.Add(2, "a");
  pool_.Add(3, "b");
  pool_.Add(4, "c");
  EXPECT_EQ(WhoMakesRoom("d"), 1);
}

TEST_F(StrangerPoolTest, WithoutDescriptorsOneGoesBeforeThePoolIsFull) {
  EXPECT_EQ(WhoMakesRoom("a", /*full=*/true), std::nullopt) << "there is none";
  pool_.Add(1, "a");
  EXPECT_EQ(WhoMakesRoom("b", /*full=*/true), 1);
}

TEST_F(StrangerPoolTest, AStrangerThatHasGreetedStaysLonger) {
  pool_.Add(1, "a");
  pool_.Add(2, "a");
  greeted_ = {1};
  EXPECT_EQ(WhoMakesRoom("a"), 2);
  greeted_ = {1, 2};
  EXPECT_EQ(WhoMakesRoom("a"), 1);
}

}  // namespace
}  // namespace muster::stranger_pool_test
