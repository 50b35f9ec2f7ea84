#include "muster/train/hooks/profiler.h"

#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "muster/observe/tracer.h"
#include "muster/train/testing/training_process.h"

namespace muster::profiler_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty;

// The store's simulated time, for timelines.
class StoreClock final : public TraceClock {
 public:
  explicit StoreClock(const Clock& clock) : clock_(clock) {}
  int64_t Nanos() const override { return absl::ToUnixNanos(clock_.Now()); }

 private:
  const Clock& clock_;
};

// A session with a tracer that writes nothing automatically, as in a process without --trace.
class ProfilerTest : public ::testing::Test {
 protected:
  std::unique_ptr<Session> MakeSession(std::vector<std::shared_ptr<SessionHook>> hooks) {
    client_ = store_.Client("chief:0", {.track = track_});
    return std::make_unique<Session>(SessionEnvironment{.client = client_.get(),
                                                        .algorithm = &algorithm_,
                                                        .loop = &store_.loop,
                                                        .files = &store_.files,
                                                        .clock = &store_.clock,
                                                        .is_chief = true,
                                                        .tracer = tracer_.get()},
                                     SessionOptions{.log_step_count_steps = 0}, std::move(hooks));
  }
  void Train(Session& session, int steps) {
    for (int i = 0; i < steps; ++i) {
      ASSERT_EQ(session.Run(), absl::OkStatus());
      store_.Pass(absl::Seconds(1));
    }
  }
  std::vector<std::string> Files() {
    return store_.files.ListDirectory("profiles").value_or(std::vector<std::string>());
  }
  // The steps (by the global step known when each began), and how often each activity occurs.
  struct Timeline {
    std::vector<int64_t> steps;
    std::map<std::string, int> events;
  };
  Timeline Read(const std::string& name) {
    Timeline timeline;
    for (const auto& event : nlohmann::json::parse(*store_.files.ReadFile(JoinPath("profiles", name)))) {
      if (!event.contains("ts")) continue;
      ++timeline.events[event.at("name").get<std::string>()];
      if (event.at("name") == "step") timeline.steps.push_back(event.at("args").at("step").get<int64_t>());
    }
    return timeline;
  }

  SimulatedStore store_{1, {"chief:0"}, {.lease = absl::Hours(100)}};
  StoreClock trace_clock_{store_.clock};
  std::unique_ptr<Tracer> tracer_ = *Tracer::Open({.task = "chief:0"}, store_.files, trace_clock_);
  Track* const track_ = tracer_->AddTrack("training");
  QuadraticSource source_{{{.name = "w", .shape = {3}}}};
  AsynchronousAlgorithm algorithm_{source_, *PlaceVariables(source_.variables(), 1, Placement::kRoundRobin, {}),
                                   RuleSpec{.learning_rate = 0.1}};
  std::unique_ptr<StoreClient> client_;
};

TEST_F(ProfilerTest, ARangeOfStepsIsOneFile) {
  const auto session = MakeSession({Profiler({.first_step = 3, .last_step = 5, .output_dir = "profiles"})});
  ASSERT_EQ(session->Start(), absl::OkStatus());
  Train(*session, 5);
  EXPECT_THAT(Files(), IsEmpty()) << "the last step isn't over while its hooks are called";
  Train(*session, 3);
  EXPECT_THAT(Files(), ElementsAre("timeline-3-5.json"));
  ASSERT_EQ(session->Close(), absl::OkStatus());
  EXPECT_THAT(Files(), ElementsAre("timeline-3-5.json"));
  const Timeline timeline = Read("timeline-3-5.json");
  // The first step's BeforeRun began earlier, and is included: so each of the three steps is complete.
  EXPECT_THAT(timeline.steps, ElementsAre(2, 3, 4));
  EXPECT_EQ(timeline.events.at("compute"), 3);
  EXPECT_GE(timeline.events.at("hooks"), 6);
}

TEST_F(ProfilerTest, ARangeThatTheTrainingEndsInIsWrittenAtTheEnd) {
  const auto session = MakeSession({Profiler({.first_step = 3, .last_step = 500, .output_dir = "profiles"})});
  ASSERT_EQ(session->Start(), absl::OkStatus());
  Train(*session, 4);
  ASSERT_EQ(session->Close(), absl::OkStatus());
  EXPECT_THAT(Files(), ElementsAre("timeline-3-4.json"));
}

TEST_F(ProfilerTest, EverySoManyStepsAfterTheFirst) {
  const auto session = MakeSession({Profiler({.save_steps = 3, .output_dir = "profiles"})});
  ASSERT_EQ(session->Start(), absl::OkStatus());
  Train(*session, 9);
  ASSERT_EQ(session->Close(), absl::OkStatus());
  EXPECT_THAT(Files(), ElementsAre("timeline-4.json", "timeline-7.json"));
  EXPECT_THAT(Read("timeline-7.json").steps, ElementsAre(6));
}

TEST_F(ProfilerTest, EverySoOften) {
  const auto session = MakeSession({Profiler({.save_interval = absl::Seconds(4), .output_dir = "profiles"})});
  ASSERT_EQ(session->Start(), absl::OkStatus());
  Train(*session, 10);
  ASSERT_EQ(session->Close(), absl::OkStatus());
  EXPECT_THAT(Files(), ElementsAre("timeline-5.json", "timeline-9.json"));
}

TEST_F(ProfilerTest, ASecondOneOfASessionIsAnErrorAndTheNextSessionMayHaveOne) {
  const ProfilerOptions options{.save_steps = 3};
  {
    const auto session = MakeSession({Profiler(options), Profiler(options)});
    const absl::Status status = session->Start();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("a session has one Profiler at most"));
  }
  const auto session = MakeSession({Profiler(options)});
  EXPECT_EQ(session->Start(), absl::OkStatus());
}

TEST_F(ProfilerTest, BadOptionsAndNoTracer) {
  EXPECT_TRUE(absl::IsInvalidArgument(Profiler({})->Begin()));
  EXPECT_TRUE(absl::IsInvalidArgument(Profiler({.first_step = 3})->Begin()));
  EXPECT_TRUE(absl::IsInvalidArgument(Profiler({.first_step = 3, .last_step = 2})->Begin()));
  EXPECT_TRUE(absl::IsInvalidArgument(Profiler({.first_step = 0, .last_step = 2})->Begin()));
  EXPECT_TRUE(absl::IsInvalidArgument(Profiler({.first_step = 3, .last_step = 4, .save_steps = 2})->Begin()));
  EXPECT_TRUE(absl::IsFailedPrecondition(Profiler({.save_steps = 2})->AfterCreateSession({})));
}

TEST_F(ProfilerTest, AFileThatCannotBeWrittenIsTheRunsError) {
  const auto session = MakeSession({Profiler({.first_step = 1, .last_step = 1, .output_dir = "profiles"})});
  ASSERT_EQ(session->Start(), absl::OkStatus());
  store_.files.SetReadOnly(true);
  ASSERT_EQ(session->Run(), absl::OkStatus());
  EXPECT_FALSE(session->Run().ok());
}

}  // namespace
}  // namespace muster::profiler_test
