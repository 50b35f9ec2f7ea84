// The synchronous gate against the semantics of TensorFlow's SyncReplicasOptimizer and ConditionalAccumulator, push by
// push; and no death of a ps, at any point, changes the result.
#include "muster/store/gates/synchronous_gate.h"

#include <gmock/gmock.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/testing/sanitizer_stride.h"
#include "muster/store/service/store_status.h"
#include "muster/store/testing/scripted_death.h"
#include "muster/store/testing/scripted_moment.h"
#include "muster/store/testing/scripted_worker.h"

namespace muster::synchronous_gate_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr;
using Pending = ScriptedWorker::Pending;

const std::vector<VariableSpec> kVariables = {{.name = "w", .shape = {20000}},
                                              {.name = "b", .dtype = DType::kFloat64, .shape = {3}}};
const std::vector<std::string> kTasks = {"worker:0", "worker:1", "worker:2"};
// Nobody heartbeats here; a death shows only by its connections.
const LeaseOptions kLease = {.lease = absl::Hours(1), .disconnect_grace = absl::Seconds(3)};

GateSpec Gate(uint32_t aggregate, uint32_t total, bool elastic = false) {
  return {GateKind::kSynchronous, aggregate, total, elastic};
}

class SynchronousGateTest : public ::testing::Test {
 protected:
  void Start(const GateSpec& gate, int num_ps = 1, ArenaProbe* probe = nullptr) {
    store_ = std::make_unique<SimulatedStore>(num_ps, kTasks, kLease, probe);
    model_ = std::make_unique<WorkerModel>(kVariables, RuleSpec{.learning_rate = 1}, num_ps);
    model_->binding.gate = gate;
    for (size_t i = 0; i < kTasks.size(); ++i)
      workers_.push_back(std::make_unique<ScriptedWorker>(*store_, kTasks[i], *model_, i == 0));
  }
  ScriptedWorker& worker(int i) { return *workers_[i]; }
  void PassTime() { store_->Pass(absl::Milliseconds(10)); }
  Pending Contribute(int i, double gradient, uint64_t local_step, int ps = 0) {
    Pending answer = worker(i).Contribute(gradient, local_step, ps);
    PassTime();
    return answer;
  }
  nlohmann::json Status(int ps = 0) { return nlohmann::json::parse(StatusJson(store_->service(ps).MakeView())); }
  // Starts a new life of worker i.
  void Restart(int i) {
    const uint64_t sequence = worker(i).sequence;
    workers_[i].reset();
    PassTime();
    workers_[i] = std::make_unique<ScriptedWorker>(*store_, kTasks[i], *model_);
    workers_[i]->sequence = sequence;
  }

  std::unique_ptr<SimulatedStore> store_;
  std::unique_ptr<WorkerModel> model_;
  std::vector<std::unique_ptr<ScriptedWorker>> workers_;
};

TEST_F(SynchronousGateTest, AnswersWhenNHaveContributedWithTheMeanAndTheNextRound) {
  Start(Gate(2, 2));
  const Pending first = Contribute(0, 1, 0);
  EXPECT_FALSE(first->there) << "it waits for the other";
  const Pending second = Contribute(1, 3, 0);
  ASSERT_TRUE(first->ok() && second->ok());
  for (const Pending& answer : {first, second}) {
    EXPECT_EQ(answer->first(), -2.0f);
    EXPECT_EQ(answer->reply.round, 1u);
    EXPECT_EQ(answer->reply.global_step, 1);
    EXPECT_FALSE(answer->reply.dropped);
  }
  EXPECT_TRUE(first->values == second->values);
  EXPECT_EQ(Status()["minibatches"], 2);
  EXPECT_EQ(Status()["version"], 1);
}

TEST_F(SynchronousGateTest, TheMeanIsOfTheContributorsAndALateGradientIsDropped) {
  Start(Gate(2, 3));
  Contribute(0, 1, 0);
  const Pending second = Contribute(1, 3, 0);
  ASSERT_TRUE(second->ok());
  EXPECT_EQ(second->first(), -2.0f);
  const Pending late = Contribute(2, 100, 0);
  ASSERT_TRUE(late->ok()) << "answered at once, and it is no error";
  EXPECT_TRUE(late->reply.dropped);
  EXPECT_EQ(late->reply.round, 1u) << "it picks up the next token";
  EXPECT_EQ(late->first(), -2.0f) << "with the newest values, without its own gradient";
  EXPECT_EQ(Status()["gate"]["dropped"], 1);
  // With the token, its gradient is as good as any.
  const Pending next = Contribute(2, 5, late->reply.round);
  EXPECT_FALSE(next->there);
  Contribute(0, 1, 1);
  ASSERT_TRUE(next->ok());
  EXPECT_EQ(next->first(), -5.0f);
  EXPECT_EQ(next->reply.global_step, 2);
}

// Workers on the ps's host fire rounds in its memory while it copies values for another client.
TEST_F(SynchronousGateTest, NeitherTokenNorVersionIsNewerThanTheValuesThatComeWithIt) {
  ScriptedMoment probe;
  Start(Gate(2, 3), 1, &probe);
  Contribute(0, 1, 0);
  ASSERT_TRUE(Contribute(1, 3, 0)->ok());
  const auto fire = [this] {
    ArenaHeader& header = store_->service(0).MakeView().arena->header();
    ++header.gate.round;
    ++header.counters.updates;
  };
  probe.does = fire;
  const Pending late = Contribute(2, 100, 0);
  ASSERT_TRUE(late->ok());
  EXPECT_EQ(probe.does, nullptr);
  EXPECT_EQ(late->reply.round, 1u);
  EXPECT_EQ(late->reply.version, 1u);
  // The same holds for values alone.
  PushPullRequest message = worker(2).Message();
  message.minibatches = 0;
  message.pushed.clear();
  probe.stripes = 0;
  probe.does = fire;
  const Pending pulled = worker(2).Send(message, 0);
  PassTime();
  ASSERT_TRUE(pulled->ok());
  EXPECT_EQ(probe.does, nullptr);
  EXPECT_EQ(pulled->reply.round, 2u);
  EXPECT_EQ(pulled->reply.version, 2u);
}

TEST_F(SynchronousGateTest, ARetriedPushIsAddedOnce) {
  Start(Gate(2, 2));
  PushPullRequest message = worker(0).Message();
  message.contributes = true;
  const Pending lost = worker(0).Send(message, 4);
  PassTime();
  worker(0).BreakConnection(*store_);
  PassTime();
  const Pending again = worker(0).Send(message, 4);
  PassTime();
  EXPECT_FALSE(again->there) << "its round hasn't fired";
  EXPECT_EQ(Status()["gate"]["contributors"], 1);
  Contribute(1, 2, 0);
  ASSERT_TRUE(again->ok());
  EXPECT_EQ(again->first(), -3.0f);
  // The answer is lost after the round: the repeated request is answered at once.
  const Pending late = worker(0).Send(message, 4);
  PassTime();
  ASSERT_TRUE(late->ok());
  EXPECT_FALSE(late->reply.dropped);
  EXPECT_EQ(late->first(), -3.0f);
  EXPECT_EQ(Status()["gate"]["contributors"], 0);
}

TEST_F(SynchronousGateTest, AContributionOutlivesItsSender) {
  Start(Gate(2, 3));
  Contribute(0, 1, 0);
  workers_[0].reset();
  store_->Pass(absl::Seconds(5));
  const Pending second = Contribute(1, 3, 0);
  ASSERT_TRUE(second->ok());
  EXPECT_EQ(second->first(), -2.0f);
}

TEST_F(SynchronousGateTest, WhoComesWhenTooFewAreLeftForARoundIsToldThatTrainingHasEnded) {
  Start(Gate(2, 3));
  Contribute(0, 1, 0);
  Contribute(1, 3, 0);
  ASSERT_EQ(worker(1).client().Done(), absl::OkStatus());
  const Pending waiting = Contribute(2, 5, 1);
  EXPECT_FALSE(waiting->there) << "worker 0 may still come";
  ASSERT_EQ(worker(0).client().Done(), absl::OkStatus());
  PassTime();
  ASSERT_TRUE(waiting->lost()) << "nobody else ever comes";
  EXPECT_TRUE(absl::IsCancelled(waiting->status)) << waiting->status;
  EXPECT_THAT(std::string(waiting->status.message()), HasSubstr("round 1 needs 2 contributors"));
}

TEST_F(SynchronousGateTest, TheDeadMayComeBackToARound) {
  Start(Gate(2, 2));
  workers_[0].reset();
  workers_[2].reset();
  store_->Pass(absl::Seconds(5));
  const Pending waiting = Contribute(1, 5, 0);
  EXPECT_FALSE(waiting->there);
}

// True if a worker's two lives in one round count once.
class SynchronousGateBugTest : public SynchronousGateTest {
 protected:
  class Probe final : public ArenaProbe {
   public:
    explicit Probe(std::optional<PlantedBug> bug) : bug_(bug) {}
    void At(ArenaPoint) override {}
    bool Has(PlantedBug bug) const override { return bug_ == bug; }
    bool dying() const override { return false; }

   private:
    const std::optional<PlantedBug> bug_;
  };
  bool TwoLivesCountOnce(std::optional<PlantedBug> bug) {
    Probe probe(bug);
    Start(Gate(2, 3), 1, &probe);
    Contribute(0, 1, 0);
    Restart(0);
    const Pending again = Contribute(0, 50, 0);
    bool once = !again->there && Status()["gate"]["contributors"] == 1;
    const Pending second = Contribute(1, 3, 0);
    once = once && again->ok() && again->reply.dropped && second->ok() && second->first() == -2.0f;
    workers_.clear();
    store_.reset();
    return once;
  }
};

TEST_F(SynchronousGateBugTest, NobodyIsCountedTwiceInARound) { EXPECT_TRUE(TwoLivesCountOnce(std::nullopt)); }
TEST_F(SynchronousGateBugTest, WhoWouldBeIsFound) {
  EXPECT_FALSE(TwoLivesCountOnce(PlantedBug::kCountContributorTwice));
}

TEST_F(SynchronousGateTest, AnElasticGateShrinksWhenAWorkerDies) {
  Start(Gate(3, 3, true));
  const Pending first = Contribute(0, 1, 0);
  const Pending second = Contribute(1, 3, 0);
  EXPECT_FALSE(first->there);
  workers_[2].reset();
  store_->Pass(absl::Milliseconds(2900));
  EXPECT_FALSE(first->there) << "it may come back";
  store_->Pass(absl::Milliseconds(200));
  ASSERT_TRUE(first->ok() && second->ok());
  EXPECT_EQ(first->first(), -2.0f);
}

TEST_F(SynchronousGateTest, WhoWasLostAndComesBackIsNeededAgain) {
  Start(Gate(3, 3, true));
  store_->Pass(kLease.lease / 3 * 2);
  ASSERT_EQ(worker(0).client().Pull(PullWhat::kTrainable), absl::OkStatus());
  store_->Pass(kLease.lease / 3 * 2);
  ASSERT_TRUE(Contribute(0, 1, 0)->ok()) << "nobody was heard of else, for longer than a lease";
  const Pending second = Contribute(1, 1, 1);
  EXPECT_FALSE(second->there) << "the first one is there, too";
  EXPECT_TRUE(Contribute(0, 1, 1)->ok());
  EXPECT_TRUE(second->ok());
}

TEST_F(SynchronousGateTest, AnElasticGateShrinksWhenAWorkerIsDone) {
  Start(Gate(3, 3, true));
  const Pending first = Contribute(0, 1, 0);
  const Pending second = Contribute(1, 3, 0);
  EXPECT_EQ(worker(2).client().Done(), absl::OkStatus());
  PassTime();
  ASSERT_TRUE(first->ok() && second->ok());
  EXPECT_EQ(second->first(), -2.0f);
  EXPECT_EQ(worker(1).client().Done(), absl::OkStatus());
  EXPECT_TRUE(Contribute(0, 1, 1)->ok()) << "alone, it waits for nobody";
}

TEST_F(SynchronousGateTest, AGateThatIsNotElasticWaitsAndSaysForWhom) {
  Start(Gate(3, 3));
  const Pending first = Contribute(0, 1, 0);
  workers_[2].reset();
  store_->Pass(absl::Seconds(60));
  EXPECT_FALSE(first->there);
  const nlohmann::json client = Status()["clients"][0];
  EXPECT_THAT(client["waiting_for"].get<std::string>(),
              AllOf(HasSubstr("round 0"), HasSubstr("1 of 3"), HasSubstr("worker:1, worker:2")));
  EXPECT_NEAR(client["waiting_seconds"].get<double>(), 60, 1);
  EXPECT_EQ(Status()["clients"][1]["waiting_for"], "");
}

TEST_F(SynchronousGateTest, APartOfTheSlicesIsAContribution) {
  Start(Gate(2, 2));
  Contribute(0, 1, 0);
  PushPullRequest message = worker(1).Message();
  message.contributes = true;
  message.pushed = {1};
  const Pending second = worker(1).Send(message, 3);
  PassTime();
  ASSERT_TRUE(second->ok());
  EXPECT_EQ(second->first(), -0.5f) << "a worker without a gradient of a slice contributes zero";
  double b = 0;
  std::memcpy(&b, second->values.data() + 20000 * sizeof(float), sizeof b);
  EXPECT_EQ(b, -2.0);
  // A slice that nobody pushed stays untouched.
  const std::vector<uint64_t> before = store_->Snapshot(0).steps;
  for (int i = 0; i < 2; ++i) {
    PushPullRequest part = worker(i).Message();
    part.contributes = true;
    part.local_step = 1;
    part.pushed = {1};
    worker(i).Send(part, 1);
  }
  PassTime();
  EXPECT_THAT(before, ::testing::ElementsAre(1, 1, 1));
  EXPECT_THAT(store_->Snapshot(0).steps, ::testing::ElementsAre(1, 1, 2));
}

TEST_F(SynchronousGateTest, APsThatIsBehindGoesOnWithWhatItHas) {
  Start(Gate(2, 3), 2);
  // Worker 1 dies between ps 0 and ps 1.
  const Pending at_0 = Contribute(0, 1, 0);
  const Pending at_1 = Contribute(0, 1, 0, /*ps=*/1);
  Contribute(1, 3, 0);
  ASSERT_TRUE(at_0->ok());
  EXPECT_FALSE(at_1->there);
  // Worker 2 was too late on ps 0, and has its token.
  EXPECT_EQ(Contribute(2, 7, 0)->reply.round, 1u);
  const Pending next = Contribute(2, 7, 1, 1);
  ASSERT_TRUE(at_1->ok()) << "ps 0 is in round 1: nobody comes any more for round 0";
  EXPECT_EQ(at_1->reply.round, 1u);
  EXPECT_FALSE(next->there);
  Contribute(0, 1, 1, 1);
  ASSERT_TRUE(next->ok());
  double b = 0;
  std::memcpy(&b, next->values.data(), sizeof b);
  EXPECT_EQ(b, -1.0 - 4.0);
}

TEST_F(SynchronousGateTest, OtherValuesEndTheRound) {
  Start(Gate(2, 2));
  const Pending first = Contribute(0, 1, 0);
  ASSERT_EQ(worker(0).client().Initialize(40, 40, nullptr), absl::OkStatus());
  PassTime();
  ASSERT_TRUE(first->there);
  EXPECT_TRUE(absl::IsAborted(first->status)) << first->status;
  EXPECT_EQ(Status()["gate"]["round"], 40);
  EXPECT_EQ(Status()["gate"]["contributors"], 0);
  std::vector<Pending> answers;
  for (int i = 0; i < 2; ++i) {
    PushPullRequest message = worker(i).Message();
    message.contributes = true;
    message.local_step = 40;
    message.generation = 2;
    answers.push_back(worker(i).Send(message, 2));
    PassTime();
  }
  ASSERT_TRUE(answers[0]->ok());
  EXPECT_EQ(answers[0]->first(), -2.0f) << "the gradient for the old values is gone";
  EXPECT_EQ(answers[0]->reply.global_step, 41);
}

TEST_F(SynchronousGateTest, TrainingThatEndsKeepsNobodyWaiting) {
  Start(Gate(2, 2));
  const Pending first = Contribute(0, 1, 0);
  store_->service(0).Shutdown("enough");
  PassTime();
  EXPECT_TRUE(first->there && absl::IsCancelled(first->status)) << first->status;
}

TEST_F(SynchronousGateTest, RefusesWhatCanNeverFire) {
  StoreModel model = ModelOn(kVariables, {.learning_rate = 1});
  model.gate = Gate(4, 3);
  const absl::Status more = ValidateModel(model);
  EXPECT_TRUE(absl::IsInvalidArgument(more));
  EXPECT_THAT(std::string(more.message()), AllOf(HasSubstr("4"), HasSubstr("3")));
  model.gate.elastic = true;
  EXPECT_EQ(ValidateModel(model), absl::OkStatus());
  model.gate = Gate(0, 3);
  EXPECT_TRUE(absl::IsInvalidArgument(ValidateModel(model)));
  model.gate = Gate(1, 3);
  model.clock_limit = 1;
  EXPECT_TRUE(absl::IsInvalidArgument(ValidateModel(model)));
}

TEST_F(SynchronousGateTest, APushMustSayWhetherItContributes) {
  Start(Gate(1, 1));
  const Pending answer = worker(0).Send(worker(0).Message(), 1);
  PassTime();
  EXPECT_TRUE(answer->there && absl::IsInvalidArgument(answer->status)) << answer->status;
}

// Pushes to one ps, two of three make a round, and the ps dies meanwhile.
class DeadlyRun {
 public:
  struct Push {
    int worker;
    double gradient;
    uint64_t local_step;
    bool once = false;  // isn't repeated after a death
  };
  DeadlyRun(int ps, std::vector<Push> pushes) : ps_(ps), pushes_(std::move(pushes)) {}

  struct Outcome {
    std::vector<std::byte> bytes;
    std::vector<uint64_t> steps;
    nlohmann::json status;
    uint64_t points = 0;
    bool operator==(const Outcome& other) const {
      return bytes == other.bytes && steps == other.steps && status["gate"] == other.status["gate"] &&
             status["version"] == other.status["version"] && status["global_step"] == other.status["global_step"] &&
             status["minibatches"] == other.status["minibatches"];
    }
  };

  // The ps dies at point `death`, and its next life at its point `second` (0: never).
  Outcome Run(uint64_t death, uint64_t second) {
    model_.binding.gate = Gate(2, 3);
    std::vector<std::unique_ptr<ScriptedWorker>> workers;
    for (size_t i = 0; i < kTasks.size(); ++i)
      workers.push_back(std::make_unique<ScriptedWorker>(store_, kTasks[i], model_, i == 0));
    probe_.passed = 0;
    probe_.KillAt(death);
    second_ = second;
    for (const Push& push : pushes_) {
      PushPullRequest message = workers[push.worker]->Message(ps_);
      message.contributes = true;
      message.local_step = push.local_step;
      asked_.push_back({workers[push.worker].get(), message, push.gradient, nullptr, push.once});
      RepeatUnanswered();
      if (push.once) asked_.pop_back();
    }
    for (const Asked& asked : asked_)
      if (asked.message.local_step < 4) {
        EXPECT_TRUE(asked.answer->ok()) << asked.answer->status;
      }
    Outcome outcome{.points = probe_.passed};
    probe_.KillAt(0);
    const PartSnapshot part = store_.Snapshot(ps_);
    outcome.bytes = part.bytes;
    outcome.steps = part.steps;
    outcome.status = nlohmann::json::parse(StatusJson(store_.service(ps_).MakeView()));
    return outcome;
  }

 private:
  struct Asked {
    ScriptedWorker* worker;
    PushPullRequest message;
    double gradient;
    Pending answer;
    bool once = false;
  };

  // Repeats what isn't answered, however often the ps dies of it.
  void RepeatUnanswered() {
    for (;;) {
      for (Asked& asked : asked_)
        if (asked.answer == nullptr || (asked.answer->lost() && !asked.once))
          asked.answer = asked.worker->Send(asked.message, asked.gradient, ps_);
      if (Survives([&] { store_.Pass(absl::Seconds(1)); })) return;
      do {
        store_.KillPs(ps_);
        probe_.KillAt(std::exchange(second_, 0));
      } while (!Survives([&] { store_.StartPs(ps_); }));
      store_.Pass(absl::Milliseconds(1));  // the connections break
      for (Asked& asked : asked_) {
        if (!asked.answer->there && !asked.once) asked.answer = nullptr;
      }
    }
  }

  const int ps_;
  const std::vector<Push> pushes_;
  ScriptedDeath probe_;
  // ps 0 holds b, ps 1 holds w.
  SimulatedStore store_{2, kTasks, kLease, &probe_};
  WorkerModel model_{{kVariables[1], kVariables[0]}, RuleSpec{.kind = RuleKind::kAdam, .learning_rate = 0.1}, 2};
  std::vector<Asked> asked_;
  uint64_t second_ = 0;
};

// The ps dies within the push of worker 0, which never comes again: what arrived of it is in the mean of the stripes
// that it reached, and in no later round's.
TEST_F(SynchronousGateTest, APushThatIsGivenUpCountsWhereItHasArrived) {
  ScriptedDeath probe;
  Start(Gate(2, 3), 1, &probe);
  worker(0).Contribute(1, 0);
  constexpr int kPointsOfAStripe = 4 + 3 * (kStripeElements / kUndoBlockElements) + 3;
  probe.KillAt(kPointsOfAStripe + 3);  // in the second stripe of w
  ASSERT_FALSE(Survives([&] { PassTime(); }));
  store_->KillPs(0);
  probe.KillAt(0);
  store_->StartPs(0);
  store_->Pass(absl::Seconds(1));
  const auto last_of_w = [](const Pending& answer) {
    float value = 0;
    std::memcpy(&value, answer->values.data() + 19999 * sizeof value, sizeof value);
    return value;
  };
  Contribute(1, 3, 0);
  const Pending second = Contribute(2, 5, 0);
  ASSERT_TRUE(second->ok());
  EXPECT_EQ(second->first(), -3.0f) << "(1 + 3 + 5) / 3";
  EXPECT_EQ(last_of_w(second), -4.0f) << "(3 + 5) / 2";
  Contribute(1, 2, 1);
  const Pending next = Contribute(2, 4, 1);
  ASSERT_TRUE(next->ok());
  EXPECT_EQ(next->first(), -6.0f);
  EXPECT_EQ(last_of_w(next), -7.0f);
  workers_.clear();
  store_.reset();
}

void ExpectTheSameWhereverItDies(int ps, const std::vector<DeadlyRun::Push>& pushes,
                                 const DeadlyRun::Outcome& undisturbed) {
  for (uint64_t death = 1; death <= undisturbed.points; death += kSanitizerStride) {
    ASSERT_TRUE(DeadlyRun(ps, pushes).Run(death, 0) == undisturbed) << "death at point " << death;
    if (death % 3 != 0) continue;
    ASSERT_TRUE(DeadlyRun(ps, pushes).Run(death, 1 + death % 17) == undisturbed)
        << "two deaths, the first at " << death;
  }
}

TEST(SynchronousGateSurvivalTest, WhereverPsZeroDiesTheRoundsComeOutTheSame) {
  const std::vector<DeadlyRun::Push> pushes = {{0, 1, 0}, {1, 3, 0}, {2, 9, 0}, {2, 5, 1},
                                               {0, 2, 1}, {1, 1, 2}, {2, 4, 2}};
  const auto undisturbed = DeadlyRun(0, pushes).Run(0, 0);
  ASSERT_EQ(undisturbed.status["global_step"], 3);
  ASSERT_EQ(undisturbed.status["gate"]["dropped"], 1);
  ASSERT_GT(undisturbed.points, 100u);
  ExpectTheSameWhereverItDies(0, pushes, undisturbed);
}

// The ps goes on to round 2 with one contributor: only the begun firing says that it must fire.
TEST(SynchronousGateSurvivalTest, WhereverAPsThatIsBehindDiesTheRoundsComeOutTheSame) {
  const std::vector<DeadlyRun::Push> pushes = {{0, 1, 0}, {1, 3, 2}, {2, 5, 2}};
  const auto undisturbed = DeadlyRun(1, pushes).Run(0, 0);
  ASSERT_EQ(undisturbed.status["gate"]["round"], 3);
  ASSERT_EQ(undisturbed.status["version"], 2);
  ASSERT_GT(undisturbed.points, 100u);
  ExpectTheSameWhereverItDies(1, pushes, undisturbed);
}

// That contributor is gone, and another client would still come for round 0: all stripes have done the same.
TEST(SynchronousGateSurvivalTest, AFiringThatHasBegunTakesNobodyMore) {
  const std::vector<DeadlyRun::Push> pushes = {{0, 1, 0}, {1, 3, 2, true}, {2, 9, 0}, {0, 1, 4}};
  const uint64_t points = DeadlyRun(1, pushes).Run(0, 0).points;
  for (uint64_t death = 1; death <= points; death += kSanitizerStride) {
    const auto outcome = DeadlyRun(1, pushes).Run(death, 0);
    ASSERT_EQ(outcome.bytes.size(), 3 * 20000 * sizeof(float));
    // Compares value and slots: Adam's first step alone is the same for every gradient.
    for (size_t part = 0; part < 3; ++part) {
      const std::byte* first = outcome.bytes.data() + part * 20000 * sizeof(float);
      for (size_t i = 0; i < 20000; ++i)
        ASSERT_EQ(std::memcmp(first, first + i * sizeof(float), sizeof(float)), 0)
            << "element " << i << " of part " << part << " after a death at point " << death;
    }
  }
}

}  // namespace
}  // namespace muster::synchronous_gate_test
