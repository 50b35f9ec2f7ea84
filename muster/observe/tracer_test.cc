#include "muster/observe/tracer.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "absl/strings/match.h"
#include "muster/base/files/memory_file_system.h"
#include "muster/observe/trace_merge.h"
#include "muster/observe/trace_summary.h"

namespace muster::tracer_test {
namespace {

using ::testing::HasSubstr;

class ManualClock final : public TraceClock {
 public:
  int64_t Nanos() const override { return now; }
  int64_t now = 5000000000;
};

void RunSteps(Track* track, ManualClock& clock, int steps, uint64_t client) {
  for (int i = 0; i < steps; ++i) {
    const Track::StepScope step(track, i);
    {
      const Track::Span compute(track, Activity::kCompute);
      clock.now += 100123;
    }
    {
      const Track::Span push(track, Activity::kPush, {.bytes = 4096, .flow = FlowOf(client, 1 + i)});
      clock.now += 20001;
    }
    clock.now += 5000;
  }
}

class TracerTest : public ::testing::Test {
 public:
  std::unique_ptr<Tracer> Open(const std::string& path, const std::string& task) {
    return Tracer::Open({.path = path, .task = task, .flush_interval = absl::Hours(1)}, files, clock).value();
  }
  std::string Read(const std::string& path) { return files.ReadFile(path).value(); }
  nlohmann::json Merge(const std::vector<std::string>& parts) {
    tasks = MergeTrace(files, parts, "merged").value();
    return nlohmann::json::parse(Read("merged"));
  }
  // Writes a part with one event, at `at`, as a task on another host does.
  void WritePart(const std::string& path, const TraceIdentity& identity, int64_t at,
                 const std::vector<ClockSample>& samples) {
    std::string text = PartHead(identity);
    for (const ClockSample& sample : samples) AppendClockSample(identity.pid, sample, text);
    AppendEvent(identity.pid, 1, {.begin = at, .duration = 1000, .activity = Activity::kApply}, text);
    auto file = files.OpenForWriting(path).value();
    ASSERT_TRUE(file->Append(AsBytes(text.data(), text.size())).ok() && file->Close().ok());
  }
  static double TimeOfApply(const nlohmann::json& trace, const std::string& task) {
    int64_t pid = -1;
    for (const auto& event : trace.at("traceEvents"))
      if (event.at("name") == "process_name" && event.at("args").at("name") == task) pid = event.at("pid");
    for (const auto& event : trace.at("traceEvents"))
      if (event.at("name") == "apply" && event.at("pid") == pid) return event.at("ts");
    return -1;
  }

  MemoryFileSystem files;
  ManualClock clock;
  std::vector<MergedTask> tasks;
};

TEST_F(TracerTest, APartIsATraceByItself) {
  {
    const auto tracer = Open("part", "worker:0");
    RunSteps(tracer->AddTrack("training"), clock, 2, 3);
  }
  const nlohmann::json events = nlohmann::json::parse(Read("part"));
  int complete = 0, flows = 0;
  for (const auto& event : events) {
    if (event.at("ph") == "s") {
      ++flows;
      EXPECT_EQ(event.at("id"), flows == 1 ? "3.1" : "3.2");
    }
    if (event.at("ph") != "X") continue;
    ++complete;
    if (event.at("name") != "push" || event.at("args").at("step") != 0) continue;
    EXPECT_DOUBLE_EQ(event.at("ts"), 5000100.123);
    EXPECT_DOUBLE_EQ(event.at("dur"), 20.001);
    EXPECT_EQ(event.at("args").at("bytes"), 4096);
  }
  EXPECT_EQ(complete, 6);
  EXPECT_EQ(flows, 2);
}

TEST_F(TracerTest, WhatWasFlushedBeforeADeathIsThereWhereverTheLastLineIsCut) {
  const auto tracer = Open("part", "worker:0");
  RunSteps(tracer->AddTrack("training"), clock, 2, 0);
  tracer->Flush();
  const std::string text = Read("part");
  const size_t head = text.find("thread_name");
  for (size_t cut = head + 40; cut <= text.size(); ++cut) {
    const auto part = ParsePart(std::string_view(text).substr(0, cut)).value();
    EXPECT_FALSE(part.ended);
    for (const std::string_view line : part.events) {
      const auto moved = MovedLine(line, 17, 2);
      ASSERT_TRUE(moved.has_value()) << line;
      ASSERT_TRUE(nlohmann::json::accept(*moved)) << *moved;
    }
  }
}

TEST_F(TracerTest, TheThreadWritesWithoutBeingAsked) {
  const auto tracer =
      Tracer::Open({.path = "part", .task = "worker:0", .flush_interval = absl::Milliseconds(1)}, files, clock).value();
  RunSteps(tracer->AddTrack("training"), clock, 1, 0);
  while (!absl::StrContains(Read("part"), "\"compute\"")) std::this_thread::yield();
}

TEST_F(TracerTest, EventsThatDontFitAreCountedInThePart) {
  {
    auto tracer = Tracer::Open({.path = "part", .task = "worker:0", .flush_interval = absl::Hours(1), .ring_events = 4},
                               files, clock)
                      .value();
    RunSteps(tracer->AddTrack("training"), clock, 2, 0);
  }
  Merge({"part"});
  EXPECT_EQ(tasks[0].left_out, 2);
  EXPECT_TRUE(tasks[0].ended);
}

TEST_F(TracerTest, WithoutAPathNothingIsWritten) {
  const auto tracer = Tracer::Open({.task = "worker:0"}, files, clock).value();
  Track* track = tracer->AddTrack("training");
  RunSteps(track, clock, 1, 0);
  tracer->Flush();
  EXPECT_FALSE(tracer->writes());
  EXPECT_EQ(track->times().Table("worker:0", "training").steps, 1);
}

TEST_F(TracerTest, AMergedTraceHasEachTaskAsAProcessPsFirstLivesApart) {
  for (const char* task : {"worker:1", "ps:0", "worker:0"}) {
    const auto tracer = Open(task, task);
    RunSteps(tracer->AddTrack("training"), clock, 1, 0);
  }
  {
    const auto again = Open("second life", "worker:1");
    RunSteps(again->AddTrack("training"), clock, 1, 0);
  }
  const nlohmann::json trace = Merge({"second life", "worker:1", "ps:0", "worker:0"});
  std::vector<std::string> names;
  double first = 1e18;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("name") == "process_name") names.push_back(event.at("args").at("name"));
    if (event.at("ph") == "X") first = std::min(first, event.at("ts").get<double>());
  }
  EXPECT_THAT(names, ::testing::ElementsAre("ps:0", "worker:0", "worker:1", "worker:1 (life 2)"));
  EXPECT_EQ(first, 0);
  for (const MergedTask& task : tasks) EXPECT_EQ(task.offset, 0) << task.task;
}

TEST_F(TracerTest, TasksOfOneHostHaveOneClockUnlessItIsContradicted) {
  WritePart("ps", {.task = "ps:0", .pid = 1, .host = "h"}, 1000000, {});
  WritePart("same", {.task = "worker:0", .pid = 2, .host = "h"}, 1000000,
            {{.at = 0, .offset = 900, .uncertainty = 1000}});
  WritePart("other", {.task = "worker:1", .pid = 3, .host = "h"}, 1000000,
            {{.at = 0, .offset = 5000000, .uncertainty = 1000}});
  const nlohmann::json trace = Merge({"ps", "same", "other"});
  EXPECT_EQ(TimeOfApply(trace, "worker:0"), TimeOfApply(trace, "ps:0"));
  EXPECT_DOUBLE_EQ(TimeOfApply(trace, "worker:1"), TimeOfApply(trace, "ps:0") + 5000);
  EXPECT_FALSE(tasks[1].measured);
  EXPECT_TRUE(tasks[2].measured);
  EXPECT_EQ(tasks[2].uncertainty, 1000);
}

TEST_F(TracerTest, BetweenTwoMeasurementsTheOffsetGoesInProportion) {
  WritePart("ps", {.task = "ps:0", .pid = 1, .host = "h"}, 0, {});
  WritePart("far", {.task = "worker:0", .pid = 2, .host = "g"}, 250000,
            {{.at = 0, .offset = 1000000, .uncertainty = 10}, {.at = 1000000, .offset = 1400000, .uncertainty = 30}});
  const nlohmann::json trace = Merge({"ps", "far"});
  EXPECT_DOUBLE_EQ(TimeOfApply(trace, "worker:0"), (250000 + 1000000 + 100000) / 1e3);
  EXPECT_EQ(tasks[1].uncertainty, 30);
  WritePart("unknown", {.task = "worker:1", .pid = 3, .host = "g"}, 250000, {});
  Merge({"ps", "unknown"});
  EXPECT_EQ(tasks[1].uncertainty, -1);
}

TEST_F(TracerTest, WhatIsNoPartIsRefusedByName) {
  const std::string text = "hello\n";
  auto file = files.OpenForWriting("note");
  ASSERT_TRUE((*file)->Append(AsBytes(text.data(), text.size())).ok() && (*file)->Close().ok());
  const auto merged = MergeTrace(files, {"note"}, "merged");
  EXPECT_TRUE(absl::IsInvalidArgument(merged.status()));
  EXPECT_THAT(merged.status().message(), HasSubstr("note"));
  EXPECT_FALSE(MergeTrace(files, {}, "merged").ok());
  EXPECT_FALSE(SummarizeTrace(text).ok());
}

TEST_F(TracerTest, TheSummaryOfATraceIsWhatTheTrackCounted) {
  StepTimesTable counted;
  {
    const auto tracer = Open("part", "worker:0");
    Track* track = tracer->AddTrack("training");
    RunSteps(track, clock, 50, 0);
    counted = track->times().Table("worker:0", "training");
  }
  Merge({"part"});
  for (const char* path : {"part", "merged"}) {
    const auto tables = SummarizeTrace(Read(path)).value();
    ASSERT_EQ(tables.size(), 1);
    EXPECT_EQ(tables.at(0).steps, 50);
    EXPECT_NEAR(tables.at(0).whole.mean_us, 125.124, 0.01);
    ASSERT_EQ(tables.at(0).rows.size(), counted.rows.size());
    for (size_t i = 0; i < counted.rows.size(); ++i) {
      EXPECT_EQ(tables.at(0).rows[i].what, counted.rows[i].what);
      EXPECT_NEAR(tables.at(0).rows[i].mean_us, counted.rows[i].mean_us, 0.01);
      EXPECT_NEAR(tables.at(0).rows[i].median_us, counted.rows[i].median_us, 0.12 * counted.rows[i].median_us);
    }
  }
}

TEST_F(TracerTest, ACaptureIsAPartOfItsOwnOfWhatEndedInIt) {
  for (const std::string path : {"", "whole.json"}) {
    auto tracer = Open(path, "worker:0");
    Track* const track = tracer->AddTrack("training");
    auto token = tracer->ClaimCapture().value();
    EXPECT_TRUE(absl::IsFailedPrecondition(tracer->ClaimCapture().status())) << "one at a time";
    RunSteps(track, clock, 2, 0);
    tracer->BeginCapture();
    RunSteps(track, clock, 3, 0);
    Track* const late = tracer->AddTrack("late");
    late->Record(Activity::kApply, clock.now, clock.now + 10);
    const auto part = nlohmann::json::parse(tracer->EndCapture());
    RunSteps(track, clock, 4, 0);
    std::map<std::string, int> names;
    for (const auto& event : part) ++names[event.at("name").get<std::string>()];
    EXPECT_EQ(names["step"], 3);
    EXPECT_EQ(names["compute"], 3);
    EXPECT_EQ(names["apply"], 1);
    EXPECT_EQ(names["thread_name"], 2);
    EXPECT_EQ(names["muster_end"], 1);

    tracer->BeginCapture();
    RunSteps(track, clock, 1, 0);
    const auto second = nlohmann::json::parse(tracer->EndCapture());
    EXPECT_EQ(std::count_if(second.begin(), second.end(), [](const auto& e) { return e.at("name") == "step"; }), 1);
    token.reset();
    EXPECT_TRUE(tracer->ClaimCapture().ok());
    tracer.reset();
    if (path.empty()) continue;
    const auto whole = nlohmann::json::parse(Read(path));
    EXPECT_EQ(std::count_if(whole.begin(), whole.end(), [](const auto& e) { return e.at("name") == "step"; }), 10);
  }
}

}  // namespace
}  // namespace muster::tracer_test
