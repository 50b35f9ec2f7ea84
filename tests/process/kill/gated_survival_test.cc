// Runs whose workers wait for each other, in rounds of the synchronous gate or for the slowest, and whose processes are
// killed with SIGKILL. For every kind of gate and every way of an update, each round, or each update, must count once,
// whichever processes have died in it.
#include <gmock/gmock.h>
#include <signal.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "muster/base/testing/built_at.h"
#include "muster/base/testing/scratch_folder.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/killed_run.h"
#include "tests/process/testing/left_behind.h"
#include "tests/process/testing/process.h"
#include "tests/process/testing/update_way_flags.h"

namespace muster::gated_survival_test {
namespace {

using ::testing::Each, ::testing::HasSubstr;

constexpr int64_t kWidth = 40000;  // three stripes
// The pipe holds the lines of few steps, so that no worker gets far ahead of the test that reads them.
const std::vector<std::string> kHeldBack = {"--log_steps=1", "--pipe_bytes=4096"};
const std::string kQuiet = "--log_steps=1000000000";

// Which of three workers make a round: all of them, whichever two come first, or as many as are alive.
struct Gate {
  const char* name;
  int aggregate;
  bool elastic;

  // Returns whether the gate waits for dead workers.
  bool exact() const { return aggregate == 3 && !elastic; }
};

void PrintTo(const Gate& gate, std::ostream* out) { *out << gate.name; }

const std::vector<Gate> kGates = {{"Exact", 3, false}, {"BackupWorker", 2, false}, {"Elastic", 3, true}};

class SynchronousRunTest : public ::testing::TestWithParam<std::tuple<Gate, UpdateWay>> {
 protected:
  static const Gate& gate() { return std::get<0>(GetParam()); }
  static const UpdateWay& way() { return std::get<1>(GetParam()); }
  static std::vector<std::string> Flags() {
    std::vector<std::string> flags = Joined(FlagsOf(way()), {"--aggregate=" + std::to_string(gate().aggregate)});
    if (gate().elastic) flags.emplace_back("--elastic");
    return flags;
  }

  // ps 0 has `w` and counts the rounds: each element has as many means added, however many processes have died. On ps 1
  // a round may have had no contributor, if they died between the two ps, or came to the restarted ps 1 after a worker
  // that was already in the next round; but not if workers contribute themselves, to ps 0 last.
  static void ExpectOneMeanARound(const FinalValues& final, int deaths) {
    const float whole = 1.0f + static_cast<float>(final.global_step);
    EXPECT_THAT(final.w, Each(whole));
    EXPECT_THAT(final.b, Each(final.b[0]));
    EXPECT_GE(final.b[0], whole - static_cast<float>(way().direct() ? 0 : deaths));
    EXPECT_LE(final.b[0], whole);
  }

  const LeftBehind left_behind_;
};

// A worker dies for good or, with an exact gate, until it is started again by hand. Like the chief it logs every step,
// and nothing reads its log: no round is without one of those two, so the run is in the middle when it dies, however
// fast it is.
TEST_P(SynchronousRunTest, ADeadWorkerIsDoneWithoutOrWaitedForToTheLastStep) {
  constexpr int64_t kSteps = 1000;
  ByHand cluster(2, 3);
  ScratchFolder model;
  const std::vector<std::string> flags =
      Joined({"--steps=" + std::to_string(kSteps), "--width=" + std::to_string(kWidth), "--model_dir=" + model.path()},
             Flags());
  const auto toy = [&](int index, const std::vector<std::string>& log) {
    return Joined(Joined(ToyThatCounts(), cluster.Flags("worker", index)), Joined(flags, log));
  };
  ServingPs ps0(cluster, 0);
  ServingPs ps1(cluster, 1);
  Process worker(toy(1, {kQuiet}));
  Process victim(toy(2, kHeldBack));
  Process chief(toy(0, kHeldBack));
  chief.WaitForErr("loss = ");
  victim.WaitForErr("loss = ");
  victim.Signal(SIGKILL);
  EXPECT_EQ(victim.Reap(), 128 + SIGKILL);
  std::optional<Process> next;
  if (gate().exact()) next.emplace(toy(2, {kQuiet}));
  EXPECT_EQ(chief.Wait(), 0) << chief.err;
  EXPECT_EQ(worker.Wait(), 0) << worker.err;
  if (next) {
    EXPECT_EQ(next->Wait(), 0) << next->err;
  }
  EXPECT_EQ(ps0.Wait(), 0) << ps0.err;
  EXPECT_EQ(ps1.Wait(), 0) << ps1.err;
  const FinalValues final = ReadFinal(model.path(), kWidth);
  EXPECT_EQ(final.global_step, kSteps);
  ExpectOneMeanARound(final, 1);
}

// A ps that is restarted on its memory knows the round being collected and its contributors.
TEST_P(SynchronousRunTest, KilledPsLoseNoRoundAndMakeNoneTwice) {
  KilledRun run(3, kWidth, Joined(Flags(), kHeldBack));
  for (int i = 0; i < 4; ++i) run.Kill(i % 2 == 0 ? "ps:0" : "ps:1");
  EXPECT_EQ(run.End(), 0) << run.log();
  const FinalValues final = run.ReadFinal();
  EXPECT_GT(final.global_step, 20);
  // All contributors of an exact round are in it on both ps.
  ExpectOneMeanARound(final, gate().exact() ? 0 : 4);
  EXPECT_THAT(run.log(), HasSubstr("found the model of an earlier life"));
  if (way().direct()) {
    EXPECT_THAT(run.log(), HasSubstr("applies its updates itself"));
  }
}

TEST_P(SynchronousRunTest, KilledWorkersAndPsTogether) {
  KilledRun run(3, kWidth, Joined(Flags(), kHeldBack));
  for (const std::string victim : {"worker:1", "ps:0", "worker:2", "ps:1", "worker:0", "worker:1"}) run.Kill(victim);
  EXPECT_EQ(run.End(), 0) << run.log();
  const FinalValues final = run.ReadFinal();
  EXPECT_GT(final.global_step, 20);
  ExpectOneMeanARound(final, 6);
}

INSTANTIATE_TEST_SUITE_P(Gates, SynchronousRunTest,
                         ::testing::Combine(::testing::ValuesIn(kGates), ::testing::ValuesIn(kWholeWays)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) + std::get<1>(info.param).name;
                         });

// Tests of bounded staleness.
class BoundedRunTest : public ::testing::TestWithParam<UpdateWay> {
 protected:
  static std::vector<std::string> Flags() { return Joined(FlagsOf(GetParam()), {"--staleness=2"}); }

  const LeftBehind left_behind_;
};

// Like asynchronous workers, each leaves at most one update that was never counted. A worker in a new life is no
// further behind than the slowest.
TEST_P(BoundedRunTest, KilledWorkersAndPsTogether) {
  KilledRun run(3, kWidth, Joined(Flags(), kHeldBack));
  for (const std::string victim : {"worker:1", "ps:0", "worker:2", "ps:1", "worker:0", "worker:1"}) run.Kill(victim);
  EXPECT_EQ(run.End(), 0) << run.log();
  const FinalValues final = run.ReadFinal();
  EXPECT_GT(final.global_step, 20);
  for (const std::vector<float>& values : {final.w, final.b}) {
    EXPECT_THAT(values, Each(values[0]));
    EXPECT_GE(values[0], 1.0f + static_cast<float>(final.global_step));
    EXPECT_LE(values[0], 1.0f + static_cast<float>(final.global_step + 4));
  }
}

std::string StatusOfPs0(const ByHand& cluster) {
  const std::string muster = BinFolder() + "/muster";
  Process ask({muster, "ps", "--status", cluster.ps_address(0), "--json"});
  EXPECT_EQ(ask.Wait(), 0) << ask.err;
  return ask.out;
}

// Returns for which worker `task` waits, according to a ps's status; empty if for none.
std::string WaitingFor(const std::string& answer, const std::string& task) {
  const nlohmann::json status = nlohmann::json::parse(answer, nullptr, /*allow_exceptions=*/false);
  if (!status.is_object()) return "";
  for (const nlohmann::json& client : status.at("clients"))
    if (client.at("task") == task) return client.value("waiting_for", "");
  return "";
}

TEST_P(BoundedRunTest, NobodyGetsFartherAheadOfAStoppedWorkerUntilItGoesOn) {
  ByHand cluster(1, 2);
  const std::vector<std::string> toy = Joined(ToyThatCounts(), Joined({"--steps=500"}, Flags()));
  // The lease is long: a stopped worker counts as alive for longer than this test looks at it.
  Process ps(Joined(ToyThatCounts(), Joined(cluster.Flags("ps", 0), {"--lease=600"})));
  ps.WaitForErr("serves at");
  Process worker(Joined(toy, Joined(cluster.Flags("worker", 1), kHeldBack)));
  worker.WaitForErr("Waiting for the chief");  // a worker that comes later doesn't bound those already present
  Process chief(Joined(toy, Joined(cluster.Flags("worker", 0), {kQuiet})));
  worker.WaitForErr("loss = ");
  worker.Signal(SIGSTOP);
  std::string answer, waits;
  for (const absl::Time give_up = absl::Now() + absl::Minutes(2);
       waits.find("worker:1 (at ") == std::string::npos && absl::Now() < give_up && !HasFailure();
       waits = WaitingFor(answer, "worker:0"))
    answer = StatusOfPs0(cluster);
  EXPECT_THAT(waits, HasSubstr("worker:1 (at ")) << answer;
  EXPECT_THAT(waits, HasSubstr("clock "));
  worker.Signal(SIGCONT);
  EXPECT_EQ(worker.Wait(), 0) << worker.err;
  EXPECT_EQ(chief.Wait(), 0) << chief.err;
  EXPECT_EQ(ps.Wait(), 0) << ps.err;
}

// A ps can't keep a worker waiting that applies its own updates, so here only the ps apply.
INSTANTIATE_TEST_SUITE_P(Ways, BoundedRunTest, ::testing::ValuesIn(Without(kWholeWays, {"Direct"})), NameOfWay);

}  // namespace
}  // namespace muster::gated_survival_test
