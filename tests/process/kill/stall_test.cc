// Synchronous training with a worker that hangs, or whose link is dead in one direction, though it is heard: the others
// go on without it, and with it once it gets on again.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "muster/base/testing/built_at.h"
#include "muster/base/testing/scratch_folder.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/killed_run.h"
#include "tests/process/testing/left_behind.h"
#include "tests/process/testing/one_way_relay.h"
#include "tests/process/testing/process.h"
#include "tests/process/testing/update_way_flags.h"

namespace muster::stall_test {
namespace {

// Two workers in elastic rounds of both, for as long as the test wants.
class StallTest : public ::testing::TestWithParam<UpdateWay> {
 protected:
  std::vector<std::string> Toy(int index) {
    const std::vector<std::string> rounds = {"--aggregate=2", "--elastic", "--steps=1000000000",
                                             "--log_steps=1000000000"};
    return Joined(Joined(ToyThatCounts(), cluster_.Flags("worker", index)), Joined(FlagsOf(GetParam()), rounds));
  }
  std::vector<std::string> Ps(const std::vector<std::string>& flags) {
    return Joined(Joined(ToyThatCounts(), cluster_.Flags("ps", 0)), Joined(FlagsOf(GetParam()), flags));
  }
  void ExpectAGoodEnd(Process& ps, const std::vector<Process*>& workers, const ProcessOptions& options = {}) {
    Process shutdown({BinFolder() + "/muster", "ps", "--shutdown", cluster_.ps_address(0)}, options);
    EXPECT_EQ(shutdown.Wait(), 0) << shutdown.err;
    for (Process* worker : workers) EXPECT_EQ(worker->Wait(), 0) << worker->err;
    EXPECT_EQ(ps.Wait(), 0) << ps.err;
  }

  ByHand cluster_{1, 2};
  ScratchFolder folder_;
  const LeftBehind left_behind_;
};

TEST_P(StallTest, TheOthersGoOnWithoutAWorkerWhoseTrainingThreadHangsUntilItPushesAgain) {
  const std::string hang = folder_.path() + "/hang";
  ASSERT_EQ(mkfifo(hang.c_str(), 0600), 0);
  Process ps(Ps({"--stall_limit=1"}));
  ps.WaitForErr("serves at");
  Process chief(Toy(0));
  ps.WaitForErr("worker:0 joined");
  Process worker(Joined(Toy(1), {"--hang_at=" + hang}));
  ps.WaitForErr("worker:1 is lost: it is heard, but has kept round ");
  ps.WaitForErr("rounds go on with 1 of 2");
  close(open(hang.c_str(), O_WRONLY | O_CLOEXEC));
  ps.WaitForErr("worker:1 is back; rounds go on with 2 of 2");
  ExpectAGoodEnd(ps, {&chief, &worker});
}

// Neither the lease nor the limit could tell so.
TEST_P(StallTest, AWorkerThatIsKilledOnThePsHostIsDeadAtOnce) {
  Process ps(Ps({"--stall_limit=0", "--lease=3600"}));
  ps.WaitForErr("serves at");
  Process chief(Toy(0));
  Process worker(Toy(1));
  ps.WaitForErr("worker:1 joined");
  worker.Signal(SIGKILL);
  EXPECT_EQ(worker.Reap(), 128 + SIGKILL);
  ps.WaitForErr("worker:1 is lost: its process has closed its connections without a goodbye; rounds go on with 1 of 2");
  ExpectAGoodEnd(ps, {&chief});
}

INSTANTIATE_TEST_SUITE_P(Ways, StallTest, ::testing::ValuesIn(kWholeWays), NameOfWay);

using StoppedWorkerTest = StallTest;

TEST_P(StoppedWorkerTest, ItIsLostAndGoesOnWhenItIsContinued) {
  Process ps(Ps({"--stall_limit=0"}));
  ps.WaitForErr("serves at");
  Process chief(Toy(0));
  Process worker(Toy(1));
  ps.WaitForErr("worker:1 joined");
  worker.Signal(SIGSTOP);
  ps.WaitForErr("worker:1 is lost: it was not heard of for ");
  ps.WaitForErr("rounds go on with 1 of 2");
  worker.Signal(SIGCONT);
  ps.WaitForErr("worker:1 is back; rounds go on with 2 of 2");
  ExpectAGoodEnd(ps, {&chief, &worker});
}

// One that applies its own updates may be stopped with a lock, and is killed then.
INSTANTIATE_TEST_SUITE_P(Ways, StoppedWorkerTest, ::testing::ValuesIn(Without(kWholeWays, {"Direct"})), NameOfWay);

class DeafLinkTest : public StallTest {
 protected:
  // The relay has another address than the ps, for which the worker finds no token by itself.
  const ProcessOptions with_token_ = {.environment = {{"MUSTER_JOB_TOKEN", "the token of a deaf link"}}};

  // Its training and its heartbeats have each been heard on a connection of their own.
  bool IsHeardTwice(const std::string& task) {
    Process ask({BinFolder() + "/muster", "ps", "--status", cluster_.ps_address(0), "--json"}, with_token_);
    EXPECT_EQ(ask.Wait(), 0) << ask.err;
    const nlohmann::json status = nlohmann::json::parse(ask.out, nullptr, /*allow_exceptions=*/false);
    if (!status.is_object()) return false;
    for (const nlohmann::json& client : status.at("clients"))
      if (client.at("task") == task) return client.value("connections", 0) >= 2;
    return false;
  }
};

// Its requests and heartbeats arrive all the time.
TEST_P(DeafLinkTest, TheOthersGoOnWithoutAWorkerThatHearsNothingUntilItDoes) {
  Process ps(Ps({"--stall_limit=0"}), with_token_);
  ps.WaitForErr("serves at");
  OneWayRelay relay(cluster_.ps_address(0));
  Process chief(Toy(0), with_token_);
  Process worker(Joined(Toy(1), {"--ps_hosts=" + relay.address()}), with_token_);
  const absl::Time give_up = absl::Now() + absl::Minutes(2);
  while (!IsHeardTwice("worker:1") && absl::Now() < give_up && !HasFailure()) {
  }
  relay.HoldAnswers(true);
  ps.WaitForErr("worker:1 is lost: it is heard, but has heard nothing of this ps for ");
  ps.WaitForErr("rounds go on with 1 of 2");
  relay.HoldAnswers(false);
  ps.WaitForErr("worker:1 is back; rounds go on with 2 of 2");
  ExpectAGoodEnd(ps, {&chief, &worker}, with_token_);
}

INSTANTIATE_TEST_SUITE_P(Ways, DeafLinkTest, ::testing::Values(kWholeWays[2]), NameOfWay);

}  // namespace
}  // namespace muster::stall_test
