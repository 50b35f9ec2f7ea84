#include "muster/launch/task_run/task_moves.h"

#include <gtest/gtest.h>

#include "muster/transport/tcp/moved_addresses.h"

namespace muster::task_moves_test {
namespace {

const TaskId kPs{kPsJob, 0}, kWorker{kWorkerJob, 0}, kEvaluator{kEvaluatorJob, 0};

TEST(TaskMovesTest, TheClusterFileLeadsFromEveryAddressToTheNewest) {
  TaskMoves moves;
  moves.Know(kPs, {"h1:20", "h1:21"});
  moves.Know(kWorker, {"h2:20"});
  moves.Know(kEvaluator, {});
  EXPECT_EQ(moves.ClusterFile(), "ps:0 h1:20\nworker:0 h2:20\n");
  moves.Know(kPs, {"h2:30", "h2:31"});
  moves.Know(kPs, {"h3:40", "h3:41"});
  EXPECT_EQ(moves.ClusterFile(), "ps:0 h3:40 h1:20 h2:30\nworker:0 h2:20\n");
  EXPECT_EQ(PresentAddressIn(moves.ClusterFile(), "h1:20"), "h3:40");
  EXPECT_EQ(moves.addresses().at(kPs).back(), "h3:41");
}

TEST(TaskMovesTest, AnAddressThatAnotherTaskHadIsKnown) {
  TaskMoves moves;
  moves.Know(kPs, {"h1:20"});
  moves.Know(kPs, {"h2:30"});
  moves.Know(kWorker, {"h2:20"});
  EXPECT_TRUE(moves.AreOfAnother(kWorker, {"h1:20"}));
  EXPECT_TRUE(moves.AreOfAnother(kWorker, {"h9:1", "h2:30"}));
  EXPECT_FALSE(moves.AreOfAnother(kPs, {"h1:20"})) << "its own";
  EXPECT_FALSE(moves.AreOfAnother(kWorker, {"h9:1"}));
}

}  // namespace
}  // namespace muster::task_moves_test
