// What a session does with the summaries that its program registers: when they are wanted, what is written, what a
// restart keeps of them, and which process may write in a directory.
#include <gmock/gmock.h>
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/wrong_configuration.h"
#include "muster/summary/event_file_reader.h"
#include "muster/summary/summary_values.h"
#include "muster/train/hooks/hooks.h"
#include "muster/train/testing/training_process.h"

namespace muster::session_summaries_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::Pair;

// What TensorBoard shows of `tag`: a START invalidates earlier events of its step and later ones.
std::map<int64_t, float> SeriesOf(FileSystem& files, const std::string& directory, const std::string& tag) {
  std::map<int64_t, float> series;
  for (const SummaryEvent& event : ReadEventFiles(files, directory)) {
    if (event.session_status == static_cast<int>(SessionStatus::kStart))
      series.erase(series.lower_bound(event.step), series.end());
    for (const auto& [name, value] : event.scalars)
      if (name == tag) series[event.step] = static_cast<float>(value);
  }
  return series;
}

class SessionSummariesTest : public ::testing::Test {
 protected:
  static std::vector<std::string> Tasks() { return {"chief:0"}; }
  SessionOptions Options(int64_t save_steps) {
    return {.checkpoint_dir = "model",
            .save_checkpoint_steps = 3,
            .save_summaries_steps = save_steps,
            .log_step_count_steps = 0};
  }
  static void Steps(Session& session, int steps) {
    for (int i = 0; i < steps; ++i) ASSERT_EQ(session.Run(), absl::OkStatus());
  }
  // Returns the bytes of all event files.
  std::string AllEvents() {
    std::string all;
    for (const std::string& name : store_.files.ListDirectory("model").value_or(std::vector<std::string>()))
      if (absl::StartsWith(name, "events.")) all += *store_.files.ReadFile(JoinPath("model", name));
    return all;
  }

  SimulatedStore store_{1, Tasks()};
  TrainingProcess chief_{store_, "chief:0"};
};

TEST_F(SessionSummariesTest, OnlyWhatIsWrittenIsWanted) {
  std::vector<bool> wanted;
  chief_.source.on_step = [&](double loss) {
    StepSummaries& step = **StepSummaries::Current("");
    wanted.push_back(step.wanted());
    step.AddText("notes", absl::StrCat("note ", wanted.size()));
    return loss;
  };
  Session session = chief_.MakeSession(Options(3));
  ASSERT_EQ(session.Start(), absl::OkStatus());
  Steps(session, 5);
  ASSERT_EQ(session.Close(), absl::OkStatus());
  EXPECT_THAT(wanted, ElementsAre(true, false, false, true, false)) << "the first run and then every third";
  EXPECT_THAT(AllEvents(), HasSubstr("note 1"));
  EXPECT_THAT(AllEvents(), HasSubstr("note 4"));
  EXPECT_FALSE(absl::StrContains(AllEvents(), "note 2"));
  EXPECT_FALSE(StepSummaries::Current("").ok()) << "the step is over";
}

TEST_F(SessionSummariesTest, WithoutASaverNothingIsWanted) {
  chief_.source.on_step = [](double loss) {
    EXPECT_FALSE((*StepSummaries::Current(""))->wanted());
    return loss;
  };
  Session session = chief_.MakeSession({});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  Steps(session, 2);
}

TEST_F(SessionSummariesTest, TheProgramsOwnLossTakesThePlaceOfTheSessions) {
  chief_.source.on_step = [](double loss) {
    (*StepSummaries::Current(""))->AddScalar("loss", 42);
    return loss;
  };
  Session session = chief_.MakeSession(Options(1));
  ASSERT_EQ(session.Start(), absl::OkStatus());
  Steps(session, 1);
  ASSERT_EQ(session.Close(), absl::OkStatus());
  const std::vector<SummaryEvent> events = ReadEventFiles(store_.files, "model");
  std::vector<std::string> story;
  for (const SummaryEvent& event : events) story.push_back(event.ToString());
  EXPECT_THAT(story, ElementsAre("1: START", "0: CHECKPOINT model/model.ckpt-0", "1: loss=42", "1: STOP",
                                 "1: CHECKPOINT model/model.ckpt-1"));
}

TEST_F(SessionSummariesTest, HParamsAndGraphAreWrittenOnceAtStepZeroAndHParamsEnd) {
  const HParam hparams[] = {{"rate", 0.5}};
  const GraphNode nodes[] = {{.name = "Net", .op = "TheNet"}};
  chief_.source.on_step = [&](double loss) {
    (*StepSummaries::Current(""))->SetHParams(hparams, {});
    (*StepSummaries::Current(""))->SetGraph(nodes);
    return loss;
  };
  Session session = chief_.MakeSession(Options(1));
  ASSERT_EQ(session.Start(), absl::OkStatus());
  Steps(session, 3);
  ASSERT_EQ(session.Close(), absl::OkStatus());
  const auto times = [this](const std::string& text) {
    int n = 0;
    const std::string all = AllEvents();
    for (size_t at = all.find(text); at != std::string::npos; at = all.find(text, at + 1)) ++n;
    return n;
  };
  EXPECT_EQ(times("session_start_info"), 1);
  EXPECT_EQ(times("session_end_info"), 1);
  EXPECT_EQ(times("TheNet"), 1);
  int at_zero = 0;
  for (const SummaryEvent& event : ReadEventFiles(store_.files, "model"))
    at_zero += event.step == 0 && event.session_status == 0;
  EXPECT_EQ(at_zero, 3) << "hyperparameters, graph, the hyperparameters' end";
}

TEST_F(SessionSummariesTest, AnOpOfTheHooksOwnIsWrittenAsItIs) {
  chief_.source.on_step = [](double loss) {
    (*StepSummaries::Current(""))->AddScalar("a", 1);
    return loss;
  };
  SessionOptions options = Options(0);
  options.save_checkpoint_steps = 0;
  Session session = chief_.MakeSession(options, {SummarySaver({.save_steps = 1, .summary_op = [] {
                                                                 std::string summary =
                                                                     (*StepSummaries::Current(""))->MergeAll();
                                                                 AppendScalar(summary, "b", 2);
                                                                 return summary;
                                                               }})});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  Steps(session, 1);
  ASSERT_EQ(session.Close(), absl::OkStatus());
  const std::vector<SummaryEvent> events = ReadEventFiles(store_.files, "model");
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[1].ToString(), "1: a=1 b=2");
}

TEST_F(SessionSummariesTest, BytesThatAreNoSummaryAreAnErrorAndArentWritten) {
  SessionOptions options = Options(0);
  options.save_checkpoint_steps = 0;
  Session session =
      chief_.MakeSession(options, {SummarySaver({.save_steps = 1, .summary_op = [] { return "loss = 0.5"; }})});
  ASSERT_EQ(session.Start(), absl::OkStatus());
  const absl::Status status = session.Run();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the summary_op's bytes are no Summary"));
}

TEST_F(SessionSummariesTest, TheScaffoldsSummaryAndAnOpAreOneTooMany) {
  const SummaryOp op = [] { return std::string(); };
  EXPECT_EQ(SummarySaver({.save_steps = 1, .scaffold_summary = op})->Begin(), absl::OkStatus());
  EXPECT_EQ(SummarySaver({.save_steps = 1, .summary_op = op})->Begin(), absl::OkStatus());
  const absl::Status both = SummarySaver({.save_steps = 1, .scaffold_summary = op, .summary_op = op})->Begin();
  EXPECT_TRUE(absl::IsInvalidArgument(both));
  EXPECT_THAT(std::string(both.message()), HasSubstr("exactly one of"));
}

TEST_F(SessionSummariesTest, ASecondWriterOfTheDirectoryIsNamedTheFirst) {
  Session session = chief_.MakeSession(Options(1));
  ASSERT_EQ(session.Start(), absl::OkStatus());
  SimulatedStore other_store(1, Tasks());
  TrainingProcess other(other_store, "chief:0", {.files = &store_.files});
  SessionOptions options;
  options.summary_dir = "model";
  Session second = other.MakeSession(options);
  const absl::Status status = second.Start();
  EXPECT_TRUE(IsWrongConfiguration(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(absl::StrCat("model has a writer already: process ", getpid())));
  Steps(session, 1);
  ASSERT_EQ(session.Close(), absl::OkStatus());
}

// The first process is killed at step 5, two steps after its last checkpoint; another job continues from there.
TEST_F(SessionSummariesTest, ARestartFromACheckpointTakesBackWhatCameAfterIt) {
  float life = 1;
  const auto report = [&life](double loss) {
    (*StepSummaries::Current(""))->AddScalar("life", life);
    return loss;
  };
  {
    chief_.source.on_step = report;
    Session session = chief_.MakeSession(Options(1));
    ASSERT_EQ(session.Start(), absl::OkStatus());
    Steps(session, 5);
    chief_.client.reset();
  }
  life = 2;
  SimulatedStore store(1, Tasks());
  store.KillPs(0);
  store.StartPs(0, &store_.files);
  TrainingProcess again(store, "chief:0", {.files = &store_.files});
  again.source.on_step = report;
  Session session = again.MakeSession(Options(1));
  ASSERT_EQ(session.Start(), absl::OkStatus());
  ASSERT_EQ(session.global_step(), 3);
  EXPECT_THAT(SeriesOf(store_.files, "model", "life"), ElementsAre(Pair(1, 1), Pair(2, 1), Pair(3, 1)))
      << "before the first new step already";
  Steps(session, 1);
  ASSERT_EQ(session.Close(), absl::OkStatus());
  EXPECT_THAT(SeriesOf(store_.files, "model", "life"), ElementsAre(Pair(1, 1), Pair(2, 1), Pair(3, 1), Pair(4, 2)));
}

TEST_F(SessionSummariesTest, ALostModelTakesBackWhatCameAfterTheCheckpointAndTheFirstRunIsWritten) {
  Session session = chief_.MakeSession(Options(4));
  ASSERT_EQ(session.Start(), absl::OkStatus());
  Steps(session, 5);  // written: 1, 5
  store_.LosePs(0);
  store_.StartPs(0);
  Steps(session, 1);
  EXPECT_EQ(session.global_step(), 4);
  ASSERT_EQ(session.Close(), absl::OkStatus());
  std::vector<int64_t> steps;
  for (const auto& [step, loss] : SeriesOf(store_.files, "model", "loss")) steps.push_back(step);
  EXPECT_THAT(steps, ElementsAre(1, 4)) << "step 5 is invalidated, and 4 is the first after the restart";
}

TEST_F(SessionSummariesTest, ACheckpointLoadedInBetweenTakesBackWhatCameAfterIt) {
  Session session = chief_.MakeSession(Options(1));
  ASSERT_EQ(session.Start(), absl::OkStatus());
  Steps(session, 5);
  ASSERT_EQ(session.Restore("model/model.ckpt-3"), absl::OkStatus());
  Steps(session, 1);
  ASSERT_EQ(session.Close(), absl::OkStatus());
  std::vector<int64_t> steps;
  for (const auto& [step, loss] : SeriesOf(store_.files, "model", "loss")) steps.push_back(step);
  EXPECT_THAT(steps, ElementsAre(1, 2, 3, 4));
}

}  // namespace
}  // namespace muster::session_summaries_test
