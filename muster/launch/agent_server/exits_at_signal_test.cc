#include "muster/launch/agent_server/exits_at_signal.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace muster::exits_at_signal_test {
namespace {

using ::testing::ElementsAre, ::testing::IsEmpty;

const TaskId kMaster{"master", 0};
const TaskId kWorker{"worker", 0};
constexpr absl::Duration kSettle = ExitsAtSignal::kSettle;

struct NotedEvents final : BackendEvents {
  void OnReserved(const TaskId&, const std::vector<std::string>&) override {}
  void OnNotReserved(const TaskId&, const absl::Status&) override {}
  void OnStarted(const TaskId& task, const LocalProcess&) override { noted.push_back(task.ToString() + " runs"); }
  void OnNotStarted(const TaskId&, const absl::Status&) override {}
  void OnOutput(const TaskId&, OutputStream, std::string_view) override {}
  void OnExit(const TaskId& task, const ExitStatus& status) override {
    noted.push_back(absl::StrCat(task.ToString(), " ", status.ShellCode(), status.at_signal ? " at a signal" : ""));
  }
  std::vector<std::string> Noted() { return std::exchange(noted, {}); }

  std::vector<std::string> noted;
};

class ExitsAtSignalTest : public ::testing::Test {
 protected:
  void Pass(absl::Duration time) {
    clock_.Advance(time);
    exits_.OnTime();
  }

  SimulatedClock clock_;
  NotedEvents events_;
  ExitsAtSignal exits_{events_, kSettle, clock_};
};

TEST_F(ExitsAtSignalTest, AGoodEndIsToldOnceNoSignalHasCome) {
  exits_.OnExit(kMaster, {});
  EXPECT_EQ(exits_.deadline(), clock_.Now() + kSettle);
  Pass(kSettle - absl::Milliseconds(1));
  EXPECT_THAT(events_.Noted(), IsEmpty());
  Pass(absl::Milliseconds(1));
  EXPECT_THAT(events_.Noted(), ElementsAre("master:0 0"));
  EXPECT_EQ(exits_.deadline(), absl::InfiniteFuture());
}

TEST_F(ExitsAtSignalTest, OneThatASignalFollowsIsNone) {
  exits_.OnExit(kMaster, {});
  Pass(kSettle / 2);
  exits_.OnSignal();
  EXPECT_THAT(events_.Noted(), ElementsAre("master:0 143 at a signal"));
  Pass(kSettle);
  EXPECT_THAT(events_.Noted(), IsEmpty()) << "told once";
}

TEST_F(ExitsAtSignalTest, NorIsOneThatFollowsASignal) {
  exits_.OnSignal();
  Pass(absl::Minutes(1));  // for a last checkpoint
  exits_.OnExit(kMaster, {});
  EXPECT_THAT(events_.Noted(), ElementsAre("master:0 143 at a signal"));
}

TEST_F(ExitsAtSignalTest, WhatBeginsAfterASignalHasNotGotIt) {
  exits_.OnSignal();
  exits_.OnExit(kMaster, {});
  exits_.OnStarted(kMaster, {});
  exits_.OnExit(kMaster, {});
  Pass(kSettle);
  EXPECT_THAT(events_.Noted(), ElementsAre("master:0 143 at a signal", "master:0 runs", "master:0 0"));
  exits_.OnStarted(kMaster, {});
  exits_.OnSignal();
  exits_.OnExit(kMaster, {});
  EXPECT_THAT(events_.Noted(), ElementsAre("master:0 runs", "master:0 143 at a signal")) << "another signal";
}

TEST_F(ExitsAtSignalTest, OtherEndsAreToldAsTheyAre) {
  exits_.OnExit(kWorker, {.code = 3});
  exits_.OnSignal();
  exits_.OnExit(kMaster, {.signal = SIGTERM});
  EXPECT_THAT(events_.Noted(), ElementsAre("worker:0 3", "master:0 143"));
}

TEST_F(ExitsAtSignalTest, WhereNobodySignalsBothNothingWaits) {
  ExitsAtSignal exits(events_, absl::ZeroDuration(), clock_);
  exits.OnSignal();
  exits.OnExit(kMaster, {});
  EXPECT_THAT(events_.Noted(), ElementsAre("master:0 0"));
}

}  // namespace
}  // namespace muster::exits_at_signal_test
