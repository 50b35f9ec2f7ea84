// Whole sessions on a simulated loop, with tracks: the parts of each step are recorded, in order and nested, whichever
// task applies the updates; and the status page shows them.
#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>

#include "muster/base/log.h"
#include "muster/store/server/store_metrics.h"
#include "muster/store/service/store_status.h"
#include "muster/train/hooks/hooks.h"
#include "muster/train/testing/training_process.h"
#include "muster/train/watch/training_status.h"

namespace muster::session_trace_test {
namespace {

using ::testing::HasSubstr, ::testing::Not;

// Each reading is a microsecond after the one before.
class CountingClock final : public TraceClock {
 public:
  int64_t Nanos() const override { return now_ += 1000; }

 private:
  mutable int64_t now_ = 0;
};

std::vector<TraceEvent> Take(Track& track) {
  std::vector<TraceEvent> events;
  track.ring()->Take([&](const TraceEvent& event) { events.push_back(event); });
  return events;
}

// The names of the activities in each step, in the order of their ends, and how often that sequence occurred.
std::map<std::string, int> Steps(const std::vector<TraceEvent>& events) {
  std::map<std::string, int> steps;
  std::string inside;
  int64_t end = 0;
  for (const TraceEvent& event : events) {
    if (event.activity != Activity::kStep) {
      inside += std::string(inside.empty() ? "" : " ") + ActivityName(event.activity);
      end = std::max(end, event.begin + event.duration);
      continue;
    }
    EXPECT_LE(end, event.begin + event.duration);
    ++steps[std::exchange(inside, "")];
  }
  return steps;
}

class SessionTraceTest : public ::testing::Test {
 public:
  // Trains five steps alone.
  void Train(SimulatedStore& store, ApplyChoice apply) {
    const std::vector<VariableSpec> variables = {{.name = "w", .shape = {3}}};
    QuadraticSource source(variables);
    AsynchronousAlgorithm algorithm(source, *PlaceVariables(variables, 1, Placement::kRoundRobin, {}),
                                    RuleSpec{.learning_rate = 0.1});
    const auto client = store.Client("chief:0", {.apply = apply, .tcp_asked_for = true, .track = &track});
    Session session({.client = client.get(),
                     .algorithm = &algorithm,
                     .loop = &store.loop,
                     .files = &store.files,
                     .clock = &store.clock,
                     .is_chief = true,
                     .metrics = &metrics},
                    {.checkpoint_dir = "model", .save_checkpoint_steps = 2, .save_summaries_steps = 0},
                    {StopAtStep({.last_step = 5})});
    ASSERT_EQ(session.Start(), absl::OkStatus());
    Take(track);  // the first checkpoint is saved outside of steps
    while (!session.ShouldStop()) {
      ASSERT_EQ(session.Run(), absl::OkStatus());
      store.Pass(absl::Milliseconds(400));
    }
    ASSERT_EQ(session.Close(), absl::OkStatus());
  }

  CountingClock clock;
  Track track{"training", clock, 1024};
  TrainingMetrics metrics;
};

TEST_F(SessionTraceTest, AStepThroughThePsHasItsPartsInTheirOrder) {
  SimulatedStore store(1, {"chief:0"});
  Train(store, ApplyChoice::kServer);
  const auto steps = Steps(Take(track));
  int plain = 0, saving = 0;
  for (const auto& [inside, count] : steps) (inside.find("checkpoint") == std::string::npos ? plain : saving) += count;
  EXPECT_EQ(steps.at("hooks compute push wait pull hooks"), plain);
  EXPECT_EQ(steps.at("hooks compute push wait pull checkpoint hooks"), saving);
  EXPECT_EQ(plain + saving, 5);
  EXPECT_GT(saving, 0);
}

TEST_F(SessionTraceTest, AWorkerThatAppliesItselfSendsNothing) {
  SimulatedStore store(1, {"chief:0"}, {}, nullptr, /*direct=*/true);
  ::testing::internal::CaptureStderr();
  SetUpLog("");
  Train(store, ApplyChoice::kDirect);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("in the memory of 1 ps: nothing is sent, over TCP or otherwise\n"));
  EXPECT_THAT(metrics.links.Get(), ::testing::ElementsAre("direct"));
  for (const auto& [inside, count] : Steps(Take(track))) {
    EXPECT_THAT(inside, ::testing::StartsWith("hooks compute wait apply"));
    EXPECT_THAT(inside, Not(HasSubstr("push")));
  }
}

TEST_F(SessionTraceTest, TheStatusOfAWorkerIsWhatItsSessionHasDone) {
  SimulatedStore store(1, {"chief:0"});
  Train(store, ApplyChoice::kServer);
  const TrainingView view{.task = "chief:0",
                          .metrics = &metrics,
                          .track = &track,
                          .clock = &store.clock,
                          .started = store.clock.Now() - absl::Seconds(10)};
  const auto status = nlohmann::json::parse(TrainingStatusJson(view));
  EXPECT_EQ(status.at("state"), "ended");
  EXPECT_EQ(status.at("steps"), 5);
  EXPECT_EQ(status.at("global_step"), 5);
  EXPECT_EQ(status.at("uptime_seconds"), 10);
  EXPECT_GT(status.at("steps_per_second"), 2);
  EXPECT_GT(status.at("checkpoint_age_seconds"), 0);
  EXPECT_EQ(status.at("step_times").at("steps"), 5);
  EXPECT_EQ(status.at("transport"), nlohmann::json({"loopback"}));
  const auto text = TrainingStatusText(status.dump()).value();
  EXPECT_THAT(text, HasSubstr("global step 5  steps here 5"));
  EXPECT_THAT(text, HasSubstr("transport loopback  sent"));
  EXPECT_THAT(text, HasSubstr("where the time of a step goes"));
  EXPECT_EQ(status.at("checkpoint_failures"), 0);
  EXPECT_FALSE(status.contains("checkpoint_failure"));
  metrics.checkpoint_failures.CatchUp(2);
  metrics.checkpoint_failure.Set("no space");
  EXPECT_THAT(TrainingStatusText(TrainingStatusJson(view)).value(),
              HasSubstr("the last save failed (2 in all): no space"));
  EXPECT_THAT(TrainingMetricsText(view), HasSubstr("muster_checkpoint_failures_total{task=\"chief:0\"} 2\n"));
  EXPECT_FALSE(TrainingStatusText("{}").ok());
  EXPECT_THAT(TrainingMetricsText(view), HasSubstr("muster_steps_total{task=\"chief:0\"} 5\n"));
}

TEST_F(SessionTraceTest, TheMetricsOfAPsAreThoseOfItsPage) {
  SimulatedStore store(1, {"chief:0"});
  Train(store, ApplyChoice::kServer);
  const auto metrics = StoreMetricsText(StatusJson(store.service(0).MakeView()), track).value();
  EXPECT_THAT(metrics, HasSubstr("muster_global_step{task=\"ps:0\"} 5\n"));
  EXPECT_THAT(metrics, HasSubstr("muster_updates_total{task=\"ps:0\"} 5\n"));
  EXPECT_THAT(metrics, HasSubstr("muster_staleness_bucket{task=\"ps:0\",le=\"0\"} 5\n"));
  EXPECT_THAT(metrics, HasSubstr("muster_clients{task=\"ps:0\",state=\"done\"} 1\n"));
  EXPECT_FALSE(StoreMetricsText("[]", track).ok());
}

TEST_F(SessionTraceTest, AJobThatHasReachedItsLastStepTrainsNoMore) {
  SimulatedStore store(1, {"chief:0"});
  TrainingProcess first(store, "chief:0");
  {
    Session session = first.MakeSession({.checkpoint_dir = "model"}, {StopAtStep({.last_step = 3})});
    ASSERT_EQ(session.Start(), absl::OkStatus());
    while (!session.ShouldStop()) ASSERT_EQ(session.Run(), absl::OkStatus());
    ASSERT_EQ(session.Close(), absl::OkStatus());
  }
  SimulatedStore again(1, {"chief:0"});
  TrainingProcess second(again, "chief:0", {.files = &store.files});
  Session session = second.MakeSession({.checkpoint_dir = "model"}, {StopAtStep({.last_step = 3})});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  EXPECT_EQ(session.global_step(), 3);
  EXPECT_TRUE(session.ShouldStop());
  EXPECT_EQ(session.Close(), absl::OkStatus());
  EXPECT_EQ(second.source.steps, 0);
}

}  // namespace
}  // namespace muster::session_trace_test
