#include "apps/muster/experiment/said_wait.h"

#include <gtest/gtest.h>

namespace muster::said_wait_test {
namespace {

TEST(SaidWait, AReasonIsSaidOnceAndWhenItChangesAndBesideTheSupervisorsWaiting) {
  SaidWait said;
  EXPECT_TRUE(said.IsNews("no CPU"));
  EXPECT_FALSE(said.IsNews("no CPU"));
  EXPECT_TRUE(said.IsNews("no memory"));
  said.OnSupervisorsLine("reaching 6 hosts");
  EXPECT_FALSE(said.IsNews("no memory"));
  said.OnSupervisorsLine("waiting for h0 since 10s: no agent has answered there yet");
  EXPECT_TRUE(said.IsNews("no memory"));
  EXPECT_FALSE(said.IsNews("no memory"));
}

}  // namespace
}  // namespace muster::said_wait_test
