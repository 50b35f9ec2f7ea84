// Local and global variables in a session with hooks: pushes count as its steps. After a ps has lost the model, the
// last checkpoint is restored and the interrupted run is run again.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "muster/algo/algorithms/local_variables.h"
#include "muster/algo/sources/quadratic_source.h"
#include "muster/base/status_macros.h"
#include "muster/store/testing/simulated_store.h"
#include "muster/train/hooks/hooks.h"
#include "muster/train/session/session.h"

namespace muster::session_local_variables_test {
namespace {

const std::vector<VariableSpec> kVariables = {{.name = "w", .shape = {3}}};

// A process whose every run assigns, moves its variable by 1 and pushes the difference.
class SteppingProcess {
 public:
  SteppingProcess(SimulatedStore& store, const std::string& task)
      : store_(store), is_chief_(task == "chief:0"), client_(store.Client(task)) {}

  SessionEnvironment Environment() {
    return {.client = client_.get(),
            .algorithm = &algorithm_,
            .loop = &store_.loop,
            .files = &store_.files,
            .clock = &store_.clock,
            .is_chief = is_chief_,
            .target = "muster://here:1",
            .stop_requested = [] { return false; }};
  }
  std::function<void()> before_push = [] {};
  int runs = 0;

 private:
  absl::StatusOr<double> Program() {
    ++runs;
    RETURN_IF_ERROR(algorithm_.PullGlobal());
    for (float& value : source_.values(0)) value += 1;
    before_push();
    RETURN_IF_ERROR(algorithm_.PushDelta().status());
    return source_.values(0)[0];
  }

  SimulatedStore& store_;
  const bool is_chief_;
  QuadraticSource source_{kVariables};
  LocalVariablesAlgorithm algorithm_{source_, *PlaceVariables(kVariables, 1, Placement::kRoundRobin, {}),
                                     RuleSpec{.kind = RuleKind::kAdd}, [this] { return Program(); }};
  std::unique_ptr<StoreClient> client_;
};

TEST(SessionLocalVariablesTest, HooksCountThePushesOfAllWorkers) {
  SimulatedStore store(1, {"chief:0", "worker:0"});
  SteppingProcess chief(store, "chief:0");
  SteppingProcess worker(store, "worker:0");
  Session chiefs(chief.Environment(), {}, {StopAtStep({.last_step = 5})});
  Session workers(worker.Environment(), {}, {StopAtStep({.last_step = 5})});
  ASSERT_EQ(chiefs.Start(), absl::OkStatus());
  ASSERT_EQ(workers.Start(), absl::OkStatus());
  while (!chiefs.ShouldStop()) {
    ASSERT_EQ(chiefs.Run(), absl::OkStatus());
    if (!workers.ShouldStop()) {
      ASSERT_EQ(workers.Run(), absl::OkStatus());
    }
  }
  EXPECT_EQ(chiefs.global_step(), 5);
  EXPECT_EQ(chiefs.last_loss(), 5) << "each saw the other's pushes";
  EXPECT_EQ(workers.Close(), absl::OkStatus());
  EXPECT_EQ(chiefs.Close(), absl::OkStatus());
}

TEST(SessionLocalVariablesTest, ARunWhosePsLosesTheModelIsRunAgainFromTheLastCheckpoint) {
  SimulatedStore store(1, {"chief:0"});
  SteppingProcess chief(store, "chief:0");
  Session session(chief.Environment(), {.checkpoint_dir = "model", .save_checkpoint_steps = 2},
                  {StopAtStep({.last_step = 6})});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  for (int run = 0; run < 4; ++run) ASSERT_EQ(session.Run(), absl::OkStatus());
  const std::string saved = session.last_checkpoint();
  chief.before_push = [&, lost = false]() mutable {
    if (std::exchange(lost, true)) return;
    store.LosePs(0);
    store.StartPs(0);
  };
  while (!session.ShouldStop()) ASSERT_EQ(session.Run(), absl::OkStatus());
  EXPECT_EQ(session.global_step(), 6);
  EXPECT_EQ(session.last_loss(), 6) << "one for each step that counts, however many were repeated";
  EXPECT_GT(chief.runs, 6);
  EXPECT_NE(saved, "");
  EXPECT_EQ(session.Close(), absl::OkStatus());
}

}  // namespace
}  // namespace muster::session_local_variables_test
