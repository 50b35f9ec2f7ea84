#include "muster/launch/far_home/far_mirror.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/launch/far_home/far_places.h"
#include "muster/launch/far_home/parcel.h"
#include "muster/launch/far_home/parts_question.h"
#include "muster/launch/registry/files/other_home.h"
#include "muster/launch/registry/files/record_file.h"
#include "muster/launch/registry/files/requests.h"
#include "muster/launch/testing/far_homes.h"

namespace muster::far_mirror_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty, ::testing::Not;

class FarMirrorTest : public FarHomesFixture {
 protected:
  FarMirrorTest() { EXPECT_TRUE(SendParcel(home_, engine_, {.id = id_, .job = kJob, .tree = tree_}).ok()); }

  absl::StatusOr<FarNews> Refresh(absl::Duration fresh = absl::ZeroDuration()) {
    return FarMirror(home_, engine_, clock_, id_, kJob).Refresh({.fresh = fresh});
  }
  RunRecord NearRun() { return Get(*near_, id_); }
  // What the job answers instead: these parts, with their bytes one behind the other.
  void BeHostile(const std::vector<nlohmann::json>& parts, const std::string& bytes) {
    hostile_ = FarMessageText({.head = {{"home", far_.path()},
                                        {"parts", parts},
                                        {"differs", nlohmann::json::array()},
                                        {"more", false},
                                        {"over", false}},
                               .bytes = bytes});
  }
  static nlohmann::json Appended(const std::string& place, uint64_t offset, uint64_t bytes) {
    return {{"place", place}, {"offset", offset}, {"bytes", bytes}};
  }
  static nlohmann::json Whole(const std::string& place, uint64_t bytes) {
    return {{"place", place}, {"whole", true}, {"bytes", bytes}};
  }
  // Whether anything but the mirror's own files has come.
  bool HasNothing() const {
    return !scratch_.Has("experiments/1/records") && !scratch_.Has("experiments/1/state.json") &&
           !scratch_.Has("experiments/1/logs");
  }

  const ExperimentId id_ = Submit();
};

TEST_F(FarMirrorTest, StatesLogsAndFilesOfTheJobAreHere) {
  BringFar(id_, RunState::kRunning);
  LogFar(id_, "worker.1", "one");
  LogFar(id_, "experiment", "two");
  far_scratch_.Write("experiments/1/job_waits", "for nodes");
  ASSERT_TRUE(Refresh().ok());
  EXPECT_EQ(NearRun().state, RunState::kRunning);
  EXPECT_THAT(Near("logs/worker.1/000001.log"), HasSubstr("o one\n"));
  EXPECT_THAT(Near("logs/experiment/000001.log"), HasSubstr("o two\n"));
  EXPECT_EQ(Near("state.json"), FarText("state.json"));
  EXPECT_EQ(Near("records"), FarText("records"));
  EXPECT_EQ(Near("job_waits"), "for nodes");
}

TEST_F(FarMirrorTest, OnlyWhatIsNewComes) {
  BringFar(id_, RunState::kRunning);
  LogFar(id_, "worker.1", "one");
  ASSERT_TRUE(Refresh().ok());
  LogFar(id_, "worker.1", "two");
  BringFar(id_, RunState::kFinished);
  ASSERT_TRUE(Refresh().ok());
  EXPECT_EQ(Near("logs/worker.1/000001.log"), FarText("logs/worker.1/000001.log"));
  EXPECT_EQ(Near("records"), FarText("records"));
  EXPECT_EQ(NearRun().state, RunState::kFinished);
}

TEST_F(FarMirrorTest, PathsAndProcessesOfTheJobAreNotTakenForThoseHere) {
  BringFar(id_, RunState::kRunning);
  EXPECT_EQ(Get(Far(), id_).output_dir, far_.output(id_));
  ASSERT_TRUE(Refresh().ok());
  EXPECT_EQ(NearRun().output_dir, home_.output(id_));
  EXPECT_EQ(NearRun().run_id, "");
  EXPECT_THAT(*ReadOtherHome(home_.other_home(id_)), (OtherHome{.path = far_.path(), .elsewhere = true}));
}

TEST_F(FarMirrorTest, CutAnswersAreAskedForAgain) {
  BringFar(id_, RunState::kRunning);
  cut_ = 2;
  ASSERT_TRUE(Refresh().ok());
  EXPECT_EQ(NearRun().state, RunState::kRunning);
  cut_ = 3;
  EXPECT_TRUE(absl::IsDataLoss(Refresh().status()));
  EXPECT_TRUE(Refresh().ok());
}

TEST_F(FarMirrorTest, MoreThanOneAnswerHoldsComesInSeveral) {
  BringFar(id_, RunState::kRunning);
  for (int i = 0; i < 40; ++i) LogFar(id_, "worker.1", std::string(60000, 'x'));
  LogFar(id_, "worker.2", "last");
  const auto news = Refresh();
  ASSERT_TRUE(news.ok()) << news.status();
  EXPECT_FALSE(news->more);
  EXPECT_GT(verbs_.size(), 3U);
  EXPECT_EQ(Near("logs/worker.1/000001.log"), FarText("logs/worker.1/000001.log"));
  EXPECT_EQ(Near("logs/worker.2/000001.log"), FarText("logs/worker.2/000001.log"));
}

// Stops after each answer, as if the reader were killed there.
TEST_F(FarMirrorTest, TheEndComesAfterTheLastLine) {
  BringFar(id_, RunState::kFinished);
  for (int i = 0; i < 40; ++i) LogFar(id_, "worker.1", std::string(60000, 'x'));
  LogFar(id_, "worker.1", "last");
  bool complete = false;
  for (int i = 0; i < 10 && !complete; ++i) {
    const auto news = FarMirror(home_, engine_, clock_, id_, kJob)
                          .Refresh({.patience = absl::ZeroDuration(), .fresh = absl::ZeroDuration()});
    ASSERT_TRUE(news.ok()) << news.status();
    complete = Near("logs/worker.1/000001.log") == FarText("logs/worker.1/000001.log");
    EXPECT_EQ(HasEnded(NearRun().state), complete) << i;
    EXPECT_EQ(scratch_.Has("experiments/1/state.json"), complete) << i;
  }
  EXPECT_TRUE(complete);
}

TEST_F(FarMirrorTest, AStateIsNeverAheadOfItsRecords) {
  BringFar(id_, RunState::kRunning);
  // So many records that they don't fit into one answer.
  const RunRecord run = Far().Run(id_).value();
  TaskRecord task{.task = {"worker", 0}, .state = RunState::kCreated, .reason = std::string(50000, 'r')};
  for (int i = 0; i < 40; ++i) {
    task.restarts = i;
    ASSERT_TRUE(Far().SetRun(run, {task}).ok());
  }
  bool complete = false;
  for (int i = 0; i < 20 && !complete; ++i) {
    ASSERT_TRUE(FarMirror(home_, engine_, clock_, id_, kJob)
                    .Refresh({.patience = absl::ZeroDuration(), .fresh = absl::ZeroDuration()})
                    .ok());
    complete = Near("records") == FarText("records");
    EXPECT_EQ(scratch_.Has("experiments/1/state.json"), complete) << i;
  }
  EXPECT_TRUE(complete);
  EXPECT_EQ(near_->Tasks(id_).value().at(0).restarts, 39);
}

TEST_F(FarMirrorTest, OfTwoReadersOneAsks) {
  BringFar(id_, RunState::kRunning);
  ASSERT_TRUE(Refresh().ok());
  const int before = asked_;
  const auto second = Refresh(absl::Hours(1));
  ASSERT_TRUE(second.ok());
  EXPECT_TRUE(second->fresh);
  EXPECT_EQ(asked_, before);
}

TEST_F(FarMirrorTest, AReaderThatCantWaitForAnotherIsTold) {
  const RunLock other = RunLock::Take(FarFile(home_, id_, kFarLockName)).value();
  const auto news = FarMirror(home_, engine_, clock_, id_, kJob).Refresh({.patience = absl::ZeroDuration()});
  EXPECT_TRUE(absl::IsUnavailable(news.status())) << news.status();
}

TEST_F(FarMirrorTest, AJobThatCantBeAskedChangesNothing) {
  BringFar(id_, RunState::kRunning);
  ASSERT_TRUE(Refresh().ok());
  silence_ = absl::UnavailableError("connection refused");
  EXPECT_EQ(Refresh().status(), silence_);
  EXPECT_EQ(NearRun().state, RunState::kRunning);
}

TEST_F(FarMirrorTest, ATornRecordInTheJobWaitsForItsRest) {
  BringFar(id_, RunState::kRunning);
  const std::string whole = FarText("records");
  far_scratch_.Write("experiments/1/records", whole + "00000100 0badcafe {\"att");
  ASSERT_TRUE(Refresh().ok());
  EXPECT_EQ(Near("records"), whole);
}

TEST_F(FarMirrorTest, HalfARecordThatAKilledReaderHasLeftIsReplaced) {
  BringFar(id_, RunState::kRunning);
  const std::string whole = FarText("records");
  scratch_.Write("experiments/1/records", whole.substr(0, whole.size() - 5));
  ASSERT_TRUE(Refresh().ok());
  EXPECT_EQ(Near("records"), whole);
  EXPECT_EQ(NearRun().state, RunState::kRunning);
}

TEST_F(FarMirrorTest, ATornRecordInAnAnswerIsTakenBack) {
  BeHostile({Appended("records", 0, 20)}, "00000100 0badcafe {\"");
  EXPECT_TRUE(absl::IsDataLoss(Refresh().status()));
  EXPECT_EQ(Near("records"), "");
  hostile_.clear();
  BringFar(id_, RunState::kRunning);
  ASSERT_TRUE(Refresh().ok());
  EXPECT_EQ(NearRun().state, RunState::kRunning);
}

TEST_F(FarMirrorTest, ARecordThatMeansNothingIsTakenBack) {
  ASSERT_TRUE(AppendRecord(far_scratch_ / "nonsense", 0, "{\"state\":\"HAPPY\"}", Durability::kProcess).ok());
  const std::string line = far_scratch_.Read("nonsense");
  BeHostile({Appended("records", 0, line.size())}, line);
  EXPECT_TRUE(absl::IsDataLoss(Refresh().status()));
  EXPECT_EQ(Near("records"), "");
}

TEST_F(FarMirrorTest, PlacesThatAreNotOfARunAreRefused) {
  for (const char* place : {"../2/records", "/tmp/x", "experiment.json", "job", "lock", "logs/../x/000001.log",
                            "output/model", "requests/0123456789abcdef.json"}) {
    BeHostile({Appended("logs/worker.1/000001.log", 0, 1), Appended(place, 0, 1)}, "xy");
    EXPECT_TRUE(absl::IsDataLoss(Refresh().status())) << place;
    EXPECT_TRUE(HasNothing()) << place;
  }
  EXPECT_EQ(ReadJobFile(home_.job(id_)).value()->id, kJob);
}

TEST_F(FarMirrorTest, WhatDiffersIsAPlaceOfTheRun) {
  const std::string escape = "records\x1b[2J\n";
  for (const std::string& place : {escape, std::string(100000, 'x'), std::string("../records")}) {
    hostile_ = FarMessageText({.head = {{"home", far_.path()},
                                        {"parts", nlohmann::json::array()},
                                        {"differs", nlohmann::json::array({place})},
                                        {"more", false},
                                        {"over", false}}});
    const absl::Status status = Refresh().status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_LT(status.message().size(), 300U);
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\x1b")));
  }
}

TEST_F(FarMirrorTest, SizesBeyondTheLimitsAreRefused) {
  constexpr uint64_t kMany = uint64_t{1} << 62;
  for (const nlohmann::json& part :
       {Appended("logs/worker.1/000001.log", 20 << 20, 1), Appended("logs/worker.1/000001.log", 0, 2),
        Appended("logs/worker.1/000001.log", kMany * 2, 1), Appended("records", kMany, 1), Whole("usage.json", kMany),
        Appended("state.json", 0, 1), Whole("records", 1), nlohmann::json{{"place", 7}, {"bytes", 1}},
        nlohmann::json{{"place", "records"}, {"offset", -1}, {"bytes", 1}}}) {
    BeHostile({part}, "x");
    EXPECT_TRUE(absl::IsDataLoss(Refresh().status())) << part;
    EXPECT_TRUE(HasNothing()) << part;
  }
}

TEST_F(FarMirrorTest, NothingIsWrittenThroughALink) {
  scratch_.Write("mine/000001.log", "mine");
  ASSERT_EQ(mkdir(home_.logs(id_).c_str(), 0700), 0);
  ASSERT_EQ(symlink((scratch_ / "mine").c_str(), (home_.logs(id_) + "/worker.1").c_str()), 0);
  ASSERT_EQ(symlink((scratch_ / "mine/000001.log").c_str(), home_.state(id_).c_str()), 0);
  BeHostile({Appended("logs/worker.1/000001.log", 4, 1)}, "x");
  EXPECT_TRUE(absl::IsFailedPrecondition(Refresh().status()));
  ASSERT_EQ(unlink((home_.logs(id_) + "/worker.1").c_str()), 0);
  BeHostile({Whole("state.json", 1)}, "x");
  EXPECT_TRUE(Refresh().ok()) << "the link is replaced";
  EXPECT_EQ(Near("state.json"), "x");
  EXPECT_EQ(scratch_.Read("mine/000001.log"), "mine");
}

TEST_F(FarMirrorTest, ALinkInTheJobIsNotFollowed) {
  far_scratch_.Write("secret", "secret");
  ASSERT_EQ(symlink((far_scratch_ / "secret").c_str(), far_.host_usage(id_).c_str()), 0);
  ASSERT_EQ(symlink((far_scratch_ / "secret").c_str(), far_.supervisor_log(id_).c_str()), 0);
  ASSERT_TRUE(Refresh().ok());
  EXPECT_FALSE(scratch_.Has("experiments/1/usage.json"));
  EXPECT_FALSE(scratch_.Has("experiments/1/supervisor.log"));
}

TEST_F(FarMirrorTest, AHomeThatIsNoPathIsRefused) {
  for (const char* home : {"", "relative", "/a/../b", "/"}) {
    hostile_ = FarMessageText({.head = {{"home", home},
                                        {"parts", nlohmann::json::array()},
                                        {"differs", nlohmann::json::array()},
                                        {"more", false},
                                        {"over", false}}});
    EXPECT_FALSE(Refresh().ok()) << home;
  }
}

TEST_F(FarMirrorTest, AnAnswerOfSomethingElseIsRefused) {
  hostile_ = FarMessageText({.head = {{"parts", 5}}});
  EXPECT_TRUE(absl::IsDataLoss(Refresh().status()));
  hostile_ = FarMessageText({});
  EXPECT_TRUE(absl::IsDataLoss(Refresh().status()));
  hostile_ = "Warning: use of a deprecated option\n";
  EXPECT_THAT(std::string(Refresh().status().message()), HasSubstr("deprecated"));
}

TEST_F(FarMirrorTest, ARequestIsPassedOnAndItsAnswerFetched) {
  ASSERT_TRUE(Refresh().ok());
  const std::string name = WriteKillRequest(home_.requests(id_), /*now=*/true).value();
  ASSERT_TRUE(Refresh().ok());
  ASSERT_TRUE(Refresh().ok());
  EXPECT_FALSE(TakeAnswer(home_.requests(id_), name).value());
  const auto asked = AnswerRequests(far_.requests(id_));
  ASSERT_EQ(asked.size(), 1U) << "once, however often it was passed on";
  EXPECT_TRUE(asked[0].now);
  ASSERT_TRUE(Refresh().ok());
  EXPECT_TRUE(TakeAnswer(home_.requests(id_), name).value());
  ASSERT_TRUE(Refresh().ok());
  EXPECT_THAT(PosixFileSystem().ListDirectory(home_.requests(id_)).value(), IsEmpty());
  EXPECT_THAT(PosixFileSystem().ListDirectory(far_.requests(id_)).value(), IsEmpty());
}

TEST_F(FarMirrorTest, AKillAndAWatchArePassedOn) {
  JobOfRun job = **ReadJobFile(home_.job(id_));
  job.killed = true;
  ASSERT_TRUE(WriteJobFile(home_.job(id_), job).ok());
  SayWatched(home_.requests(id_));
  ASSERT_TRUE(Refresh().ok());
  EXPECT_TRUE(ReadJobFile(far_.job(id_)).value()->killed);
  EXPECT_NE(WatchedMark(far_.requests(id_)), "");
}

TEST_F(FarMirrorTest, WhatTheSupervisorNotesOfItsJobIsHere) {
  JobOfRun job = **ReadJobFile(far_.job(id_));
  job.wants_another = true;
  job.ending_seconds = 2.5;
  job.host = "elsewhere";
  ASSERT_TRUE(WriteJobFile(far_.job(id_), job).ok());
  ASSERT_TRUE(Refresh().ok());
  const JobOfRun here = **ReadJobFile(home_.job(id_));
  EXPECT_TRUE(here.wants_another);
  EXPECT_EQ(here.ending_seconds, 2.5);
  EXPECT_EQ(here.host, MachineId::This().host);
}

TEST_F(FarMirrorTest, NumbersThatAJobMayNotSayAreNotTaken) {
  const JobOfRun before = **ReadJobFile(home_.job(id_));
  for (const double ending : {1e8, -1.0}) {
    hostile_ = FarMessageText({.head = {{"home", far_.path()},
                                        {"parts", nlohmann::json::array()},
                                        {"differs", nlohmann::json::array()},
                                        {"more", false},
                                        {"over", false},
                                        {"job",
                                         {{"id", kJob},
                                          {"requeues", 2147483647},
                                          {"restarts", 2147483647},
                                          {"wants_another", false},
                                          {"doubtful", false},
                                          {"ending_seconds", ending}}}}});
    ASSERT_TRUE(Refresh().ok());
    EXPECT_EQ(**ReadJobFile(home_.job(id_)), before);
  }
}

TEST_F(FarMirrorTest, AFolderOfOutputThatIsNotTheRunsOwnIsNotRead) {
  const auto told = [this](const std::string& folder) {
    RunRecord run = Get(Far(), id_);
    run.state = RunState::kPending;
    run.output_dir = folder;
    EXPECT_TRUE(Far().SetRun(run).ok());
    EXPECT_TRUE(Refresh().ok());
    return NearRun().output_dir;
  };
  EXPECT_EQ(told("/etc"), "");
  EXPECT_EQ(told(far_.path()), "");
  EXPECT_EQ(told(far_.output({.number = 2})), "");
  EXPECT_EQ(told(far_.output(id_) + "/../../../2"), "");
  EXPECT_EQ(told(far_.output(id_)), home_.output(id_));
}

// A volume that both sides may see.
TEST_F(FarMirrorTest, OutputWhereTheExperimentsFileSaysIsRead) {
  NewExperiment experiment = Single();
  experiment.file_text = "project: toaster\ntrain: {framework: any, output: /claim, run: x}\n";
  const ExperimentId id{.number = Create(*near_, experiment)};
  ASSERT_TRUE(PosixFileSystem().CreateDirectory(home_.folder(id)).ok());
  ASSERT_TRUE(WriteOtherHome(home_.other_home(id), {.path = far_.path(), .elsewhere = true}).ok());
  for (const auto& [told, here] : std::vector<std::pair<std::string, std::string>>{
           {"/claim/2", "/claim/2"}, {"/claim/../etc", ""}, {"/claims/2", ""}, {"/claim", ""}}) {
    RunRecord run = Get(*near_, id);
    run.state = RunState::kPending;
    run.output_dir = told;
    ASSERT_TRUE(near_->SetRun(run).ok());
    // Another index reads all records anew.
    for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(home_.database() + end);
    EXPECT_EQ(Get(*Open(), id).output_dir, here) << told;
  }
}

TEST_F(FarMirrorTest, AFileThatWasRemovedThereIsRemovedHere) {
  far_scratch_.Write("experiments/1/logs/worker.1/live", "2026-01-31T07:23:46.123456Z o 10 %\n");
  LogFar(id_, "worker.1", "one");
  ASSERT_TRUE(Refresh().ok());
  EXPECT_TRUE(scratch_.Has("experiments/1/logs/worker.1/live"));
  ASSERT_EQ(unlink((far_scratch_ / "experiments/1/logs/worker.1/live").c_str()), 0);
  ASSERT_TRUE(Refresh().ok());
  EXPECT_FALSE(scratch_.Has("experiments/1/logs/worker.1/live"));
}

TEST_F(FarMirrorTest, AnEndThatWasWrittenHereStays) {
  BringFar(id_, RunState::kRunning);
  ASSERT_TRUE(Refresh().ok());
  ASSERT_TRUE(near_->EndLost(id_, {.state = RunState::kKilled, .reason = "it was killed"}).ok());
  BringFar(id_, RunState::kFinished);
  const auto news = Refresh();
  ASSERT_TRUE(news.ok()) << news.status();
  EXPECT_THAT(news->problems, ElementsAre(HasSubstr("records isn't what it was")));
  EXPECT_EQ(NearRun().state, RunState::kKilled);
}

TEST_F(FarMirrorTest, LogsOfAnEarlierAttemptStay) {
  scratch_.Write("experiments/1/logs/worker.1/000002.log", "2026-01-31T07:23:46.123456Z o before\n");
  far_scratch_.Write("experiments/1/logs/worker.1/000003.log", "");
  LogFar(id_, "worker.1", "now");
  ASSERT_TRUE(Refresh().ok());
  ASSERT_TRUE(Refresh().ok());
  EXPECT_THAT(Near("logs/worker.1/000002.log"), HasSubstr("o before\n"));
  EXPECT_EQ(Near("logs/worker.1/000003.log"), FarText("logs/worker.1/000003.log"));
}

TEST_F(FarMirrorTest, LogsHaveTheBoundOfTheExperiment) {
  for (int i = 1; i <= 3; ++i)
    scratch_.Write(absl::StrCat("experiments/1/logs/worker.1/", LogFileName(i)), std::string(100, 'x'));
  BoundLogs(home_, id_, 250);
  EXPECT_FALSE(scratch_.Has("experiments/1/logs/worker.1/000001.log"));
  EXPECT_TRUE(scratch_.Has("experiments/1/logs/worker.1/000002.log"));
  BoundLogs(home_, id_, 10);
  EXPECT_TRUE(scratch_.Has("experiments/1/logs/worker.1/000003.log")) << "the last one is being written";
}

// What the reader has of so many tasks doesn't fit into one question.
class ManyTasksTest : public FarMirrorTest {
 protected:
  static constexpr int kTasks = 3000;

  ManyTasksTest() {
    BringFar(id_, RunState::kRunning);
    for (int i = 0; i < kTasks; ++i) {
      for (const ScratchFolder* folder : {&scratch_, &far_scratch_}) {
        folder->Write("experiments/1/" + FolderOf(i) + "/000001.log", "one\n");
        folder->Write("experiments/1/" + FolderOf(i) + "/live", "10 %\n");
      }
    }
  }
  static std::string FolderOf(int task) { return absl::StrCat("logs/", std::string(90, 'w'), ".", 1000 + task); }
  void SayFar(int task, const std::string& text) const {
    far_scratch_.Write("experiments/1/" + FolderOf(task) + "/000001.log", text);
  }
  std::string NearLog(int task) const { return Near(FolderOf(task) + "/000001.log"); }
};

TEST_F(ManyTasksTest, TheirLogsComeInPages) {
  SayFar(0, "one\nfirst\n");
  SayFar(kTasks - 1, "one\nlast\n");
  BringFar(id_, RunState::kFinished);
  verbs_.clear();
  const auto news = Refresh();
  ASSERT_TRUE(news.ok()) << news.status();
  EXPECT_FALSE(news->more);
  EXPECT_EQ(verbs_.size(), 2U);
  EXPECT_EQ(NearLog(0), "one\nfirst\n");
  EXPECT_EQ(NearLog(kTasks - 1), "one\nlast\n");
  EXPECT_EQ(NearRun().state, RunState::kFinished);
}

TEST_F(ManyTasksTest, AnEndBetweenTwoPagesWaitsForTheLastLines) {
  const auto answer = played_.ask;
  int questions = 0;
  played_.ask = [&](const std::string& id, const std::vector<std::string>& arguments, const std::string& input) {
    if (++questions == 2) {
      SayFar(0, "one\nlast\n");
      BringFar(id_, RunState::kFinished);
    }
    return answer(id, arguments, input);
  };
  const auto news = FarMirror(home_, engine_, clock_, id_, kJob)
                        .Refresh({.patience = absl::ZeroDuration(), .fresh = absl::ZeroDuration()});
  ASSERT_TRUE(news.ok()) << news.status();
  EXPECT_TRUE(news->more);
  EXPECT_EQ(questions, 2);
  EXPECT_EQ(NearLog(0), "one\n");
  EXPECT_FALSE(HasEnded(NearRun().state));
  ASSERT_TRUE(Refresh().ok());
  EXPECT_EQ(NearLog(0), "one\nlast\n");
  EXPECT_EQ(NearRun().state, RunState::kFinished);
}

TEST_F(FarMirrorTest, ManyRequestsFitIntoAQuestion) {
  ASSERT_TRUE(PosixFileSystem().CreateDirectory(home_.requests(id_)).ok());
  for (int i = 0; i < 64; ++i)
    scratch_.Write(absl::StrCat("experiments/1/requests/", absl::Hex(i, absl::kZeroPad16), ".json"),
                   std::string(4096, '\1'));
  BringFar(id_, RunState::kRunning);
  EXPECT_TRUE(Refresh().ok());
}

TEST_F(FarMirrorTest, AnotherJobsFolderIsNotTaken) {
  const auto news = FarMirror(home_, engine_, clock_, id_, "muster-2").Refresh({.fresh = absl::ZeroDuration()});
  EXPECT_FALSE(news.ok());
}

}  // namespace
}  // namespace muster::far_mirror_test
