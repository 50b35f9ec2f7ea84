// Tests registries of several hosts that share a MUSTER_HOME, and an index that is behind its files or is lost.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "muster/launch/registry/files/record_file.h"
#include "muster/launch/registry/registry.h"
#include "muster/launch/testing/registry_fixture.h"

namespace muster::shared_home_test {
namespace {

using ::testing::ElementsAre, ::testing::ElementsAreArray, ::testing::IsEmpty, ::testing::SizeIs,
    ::testing::UnorderedElementsAreArray;

MachineId MachineOf(const std::string& host, const std::string& boot) {
  return {.host = host, .boot = boot, .pid_numbers = "1"};
}

class SharedHomeTest : public RegistryFixture {
 protected:
  std::unique_ptr<Registry> OpenOn(const std::string& host, const std::string& boot = "") {
    const std::string its_boot = boot.empty() ? "boot-of-" + host : boot;
    const RegistryPlace place{
        .database = indexes_ / (host + ".db"), .shared = true, .machine = MachineOf(host, its_boot)};
    return OpenWith(place);
  }
  std::unique_ptr<Registry> OpenWith(const RegistryPlace& place) {
    return Registry::OpenAt(home_, place, clock_).value();
  }
  static std::vector<int64_t> NumbersOf(Registry& registry, bool only_open = false) {
    std::vector<int64_t> numbers;
    const std::vector<RunRecord> runs = registry.List({.only_open = only_open}).value();
    for (const RunRecord& run : runs) numbers.push_back(run.id.number);
    return numbers;
  }
  static absl::Time TimeOf(const std::string& folder) {
    struct stat info;
    return stat(folder.c_str(), &info) == 0 ? absl::TimeFromTimespec(info.st_mtim) : absl::InfinitePast();
  }
  // Waits until what changes the folder gives it another time.
  static void Outlast(const std::string& folder) {
    timespec now{};
    do {
      clock_gettime(CLOCK_REALTIME_COARSE, &now);
    } while (absl::TimeFromTimespec(now) <= TimeOf(folder));
  }
  // Returns when the folders were as the index of this host, which nobody shares, knows them.
  std::string KnownTime() { return Sql("SELECT value FROM notes WHERE name = 'folders_ns'").at(0); }
  RegistryPlace Alone() const { return {.database = home_.database(), .shared = false, .machine = MachineId::This()}; }
  std::unique_ptr<Registry> OpenAlone() { return OpenWith(Alone()); }
  void Age(const std::string& file, absl::Duration by) {
    const auto time = std::filesystem::last_write_time(file) - std::chrono::nanoseconds(absl::ToInt64Nanoseconds(by));
    std::filesystem::last_write_time(file, time);
  }

  const ScratchFolder indexes_;
};

// As a command has where its disk is full.
TEST_F(SharedHomeTest, AnIndexInMemoryHasAllAndLeavesNothing) {
  const auto a = Open();  // with the index in the home
  const ExperimentId id{Create(*a, Single()), 0};
  Bring(*a, id, RunState::kRunning);
  const auto b = OpenWith({.shared = true, .machine = MachineId::This()});
  EXPECT_THAT(NumbersOf(*b), ElementsAre(1));
  EXPECT_EQ(Get(*b, id).state, RunState::kRunning);
  Bring(*a, id, RunState::kFinished);
  EXPECT_EQ(Get(*b, id).state, RunState::kFinished);
  ASSERT_TRUE(b->Restart(id, Single()).ok());
  EXPECT_THAT(NumbersOf(*OpenWith({.shared = true, .machine = MachineId::This()}), true), ElementsAre(1));
  EXPECT_FALSE(std::filesystem::exists(":memory:"));
}

// Others may have another index than the home's, even on this machine.
TEST_F(SharedHomeTest, WhoRestartsTakesTurnsWithOthersWhateverItsIndex) {
  const auto registry = Open();
  const ExperimentId id{Create(*registry, Single()), 0};
  Bring(*registry, id, RunState::kFinished);
  const std::string lock = home_.experiment_lock(id.number);
  std::ofstream(lock) << "";
  Age(lock, absl::Minutes(1));  // of a command that was killed
  ASSERT_TRUE(registry->Restart(id, Single()).ok());
  EXPECT_FALSE(std::filesystem::exists(lock));
}

TEST_F(SharedHomeTest, AnotherHostSeesWhatIsStartedChangedAndEnded) {
  auto a = OpenOn("a"), b = OpenOn("b");
  const ExperimentId id{Create(*a, Single()), 0};
  EXPECT_THAT(*b->Reconcile(), IsEmpty());
  EXPECT_THAT(NumbersOf(*b), ElementsAre(1));
  EXPECT_EQ(b->Specification(1)->file_text, Single().file_text);
  Bring(*a, id, RunState::kRunning);
  ASSERT_TRUE(SetTasks(*a, id, {{.task = {kWorkerJob, 0}, .state = RunState::kRunning, .pid = 7, .host = "h"}}).ok());
  EXPECT_EQ(Get(*b, id).state, RunState::kRunning);
  ASSERT_THAT(*b->Tasks(id), SizeIs(1));
  EXPECT_EQ(b->Tasks(id)->at(0), a->Tasks(id)->at(0));
  EXPECT_TRUE(a->IsHere(Get(*a, id)));
  EXPECT_FALSE(b->IsHere(Get(*b, id))) << "its process numbers are a's";
  Bring(*a, id, RunState::kFinished);
  EXPECT_EQ(Get(*b, id).state, RunState::kFinished);
  EXPECT_EQ(Get(*b, id).ended, clock_.Now());
}

TEST_F(SharedHomeTest, FoldersThatAreKnownNeedNotBeListedAgain) {
  const auto registry = OpenAlone();
  for (int starts = 0; starts < 3; ++starts) {
    Create(*registry, Single());
    Outlast(home_.experiments());
    ASSERT_TRUE(registry->KnowFolders().ok());
    EXPECT_EQ(KnownTime(), absl::StrCat(absl::ToUnixNanos(TimeOf(home_.experiments()))));
  }
}

// As where a file system keeps whole seconds only.
TEST_F(SharedHomeTest, FoldersWithATimeOfWholeSecondsAreListedAgain) {
  const auto registry = OpenAlone();
  Create(*registry, Single());
  const std::string folders = home_.experiments();
  const timespec times[] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT},
                            {.tv_sec = absl::ToUnixSeconds(TimeOf(folders)) - 1, .tv_nsec = 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, folders.c_str(), times, 0), 0);
  ASSERT_TRUE(registry->KnowFolders().ok());
  Create(*OpenOn("b"), Single());
  unlink(home_.open_marker(2).c_str());
  ASSERT_EQ(utimensat(AT_FDCWD, folders.c_str(), times, 0), 0);
  EXPECT_THAT(NumbersOf(*OpenAlone()), ElementsAre(1, 2));
}

TEST_F(SharedHomeTest, AFolderThatAnotherHostFillsAfterItWasListedIsFound) {
  const auto other = OpenOn("b");
  const auto listed = [this](const ExperimentId& /*id*/) {
    Outlast(home_.experiments());
    return Registry::OpenAt(home_, Alone(), clock_).status();
  };
  const ExperimentId id{*other->Create(Single(), listed), 0};
  Bring(*other, id, RunState::kFinished);
  EXPECT_THAT(NumbersOf(*OpenAlone()), ElementsAre(1));
}

TEST_F(SharedHomeTest, AFileThatCanBeUsedLaterIsReadThen) {
  Create(*OpenOn("b"), Single());
  Outlast(home_.experiments());
  const std::string file = home_.experiment_file(1);
  const std::string text = *PosixFileSystem().ReadFile(file);
  ASSERT_TRUE(ReplaceFile(file, "{\"format\": 99}", Durability::kProcess).ok());
  unlink(home_.open_marker(1).c_str());
  EXPECT_THAT(NumbersOf(*OpenAlone()), IsEmpty());
  ASSERT_TRUE(ReplaceFile(file, text, Durability::kProcess).ok());
  EXPECT_THAT(NumbersOf(*OpenAlone()), ElementsAre(1));
}

TEST_F(SharedHomeTest, AFileThatWasNotThereForAWhileIsReadAgain) {
  const auto registry = OpenAlone();
  Bring(*registry, {Create(*registry, Single()), 0}, RunState::kFinished);
  Outlast(home_.experiments());
  const std::string file = home_.experiment_file(1);
  const std::string text = *PosixFileSystem().ReadFile(file);
  unlink(file.c_str());
  ASSERT_TRUE(registry->KnowFolders().ok());
  EXPECT_THAT(NumbersOf(*registry), IsEmpty());
  ASSERT_TRUE(ReplaceFile(file, text, Durability::kProcess).ok());
  EXPECT_THAT(NumbersOf(*OpenAlone()), ElementsAre(1));
}

TEST_F(SharedHomeTest, NumbersAreDifferentAndNeverGivenAgain) {
  auto a = OpenOn("a"), b = OpenOn("b");
  EXPECT_EQ(Create(*a, Single()), 1);
  EXPECT_EQ(Create(*b, Single()), 2) << "though its index knows of none";
  EXPECT_EQ(Create(*a, Single()), 3);
  Bring(*a, {3, 0}, RunState::kFinished);
  ASSERT_TRUE(a->Forget(3).ok());
  EXPECT_EQ(Create(*OpenOn("c"), Single()), 4);
}

// As two login hosts that submit at once.
TEST_F(SharedHomeTest, TwoHostsCreateAtOnce) {
  constexpr int kEach = 20;
  auto a = OpenOn("a"), b = OpenOn("b");
  std::vector<int64_t> made[2];
  std::thread other([&] {
    for (int i = 0; i < kEach; ++i) made[0].push_back(Create(*b, Single("b")));
  });
  for (int i = 0; i < kEach; ++i) made[1].push_back(Create(*a, Single("a")));
  other.join();
  std::vector<int64_t> all(2 * kEach);
  std::iota(all.begin(), all.end(), 1);
  std::vector<int64_t> both = made[0];
  both.insert(both.end(), made[1].begin(), made[1].end());
  EXPECT_THAT(both, UnorderedElementsAreArray(all));
  for (auto* const registry : {a.get(), b.get()}) {
    ASSERT_TRUE(registry->Reconcile().ok());
    EXPECT_THAT(NumbersOf(*registry), ElementsAreArray(all));
    for (const int64_t number : made[0]) EXPECT_EQ(registry->Specification(number)->project, "b");
    for (const int64_t number : made[1]) EXPECT_EQ(registry->Specification(number)->project, "a");
  }
}

TEST_F(SharedHomeTest, WhatIsForgottenVanishesElsewhere) {
  auto a = OpenOn("a"), b = OpenOn("b");
  for (int i = 0; i < 2; ++i) Create(*a, Single());
  ASSERT_TRUE(b->Reconcile().ok());
  EXPECT_THAT(NumbersOf(*b), ElementsAre(1, 2));
  Bring(*a, {1, 0}, RunState::kFinished);
  ASSERT_TRUE(PosixFileSystem().RemoveTree(home_.folder({1, 0})).ok());
  ASSERT_TRUE(a->Forget(1).ok());
  ASSERT_TRUE(b->Reconcile().ok());
  EXPECT_THAT(NumbersOf(*b), ElementsAre(2));
  EXPECT_EQ(b->Run({1, 0}).status().code(), absl::StatusCode::kNotFound);
  // The folder of the greatest number stays.
  Bring(*a, {2, 0}, RunState::kFinished);
  ASSERT_TRUE(a->Forget(2).ok());
  ASSERT_TRUE(b->Reconcile().ok());
  EXPECT_THAT(NumbersOf(*b), IsEmpty());
}

// All that ended long ago isn't looked at, so a host must be told of what begins again.
TEST_F(SharedHomeTest, AnotherAttemptIsSeenElsewhere) {
  auto a = OpenOn("a"), b = OpenOn("b");
  const ExperimentId id{Create(*a, Single()), 0};
  ASSERT_TRUE(SetTasks(*a, id, {{.task = {kWorkerJob, 0}, .state = RunState::kFinished}}).ok());
  Bring(*a, id, RunState::kFailed);
  ASSERT_TRUE(b->Reconcile().ok());
  EXPECT_THAT(NumbersOf(*b, /*only_open=*/true), IsEmpty());
  NewExperiment again = Single();
  again.file_text = "project: again\n";
  ASSERT_TRUE(a->Restart(id, again).ok());
  b = OpenOn("b");
  EXPECT_THAT(NumbersOf(*b, /*only_open=*/true), ElementsAre(1));
  const RunRecord run = Get(*b, id);
  EXPECT_EQ(run.attempt, 2);
  EXPECT_EQ(run.state, RunState::kCreated);
  EXPECT_EQ(run.ended, absl::InfinitePast());
  EXPECT_THAT(*b->Tasks(id), IsEmpty());
  EXPECT_EQ(b->Specification(1)->file_text, again.file_text);
  Bring(*a, id, RunState::kRunning);
  EXPECT_EQ(Get(*b, id).state, RunState::kRunning);
}

TEST_F(SharedHomeTest, AGridsRunsAreSeenElsewhere) {
  auto a = OpenOn("a"), b = OpenOn("b");
  const int64_t number = Create(*a, Grid(3));
  Bring(*a, {number, 0}, RunState::kRunning);
  Bring(*a, {number, 2}, RunState::kFinished);
  auto runs = b->Runs(number).value();
  ASSERT_THAT(runs, SizeIs(3));
  EXPECT_EQ(runs[0].state, RunState::kCreated);
  EXPECT_EQ(runs[1].state, RunState::kFinished);
  EXPECT_EQ(runs[1].parameters, Grid(3).runs[1]);
  for (const int run : {1, 3, 0}) Bring(*a, {number, run}, RunState::kKilled);
  EXPECT_EQ(Get(*b, {number, 0}).state, RunState::kKilled);
  ASSERT_TRUE(a->Restart({number, 0}, Grid(4)).ok());
  runs = b->Runs(number).value();
  ASSERT_THAT(runs, SizeIs(4));
  EXPECT_EQ(runs[1].state, RunState::kFinished) << "it had finished with the same parameters";
  for (const int other : {0, 2, 3}) EXPECT_EQ(runs[static_cast<size_t>(other)].state, RunState::kCreated) << other;
  EXPECT_EQ(runs[0].attempt, 2);
}

// Both write all attempts of the grid into one file.
TEST_F(SharedHomeTest, TwoHostsRestartRunsOfAGridAtOnce) {
  auto a = OpenOn("a"), b = OpenOn("b");
  const int64_t number = Create(*a, Grid(3));
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    for (const int run : {1, 2, 3, 0}) {
      if (!HasEnded(Get(*a, {number, run}).state)) Bring(*a, {number, run}, RunState::kFailed);
    }
    absl::Status restarted[2];
    std::thread other([&] { restarted[0] = b->Restart({number, 1}, Single()); });
    restarted[1] = a->Restart({number, 2}, Single());
    other.join();
    for (const absl::Status& status : restarted) ASSERT_TRUE(status.ok()) << status;
    auto c = OpenOn("c");
    for (const int run : {1, 2}) EXPECT_EQ(Get(*c, {number, run}).attempt, round + 2) << run;
  }
}

TEST_F(SharedHomeTest, ASupervisorOnANewHostReadsOnlyWhatHasNotEnded) {
  auto a = OpenOn("a");
  for (int i = 0; i < 3; ++i) Create(*a, Single());
  for (const int64_t number : {1, 3}) Bring(*a, {number, 0}, RunState::kFinished);
  const RegistryPlace place{
      .database = indexes_ / "new.db", .shared = true, .machine = MachineOf("new", "boot-of-new")};
  auto supervisors = Registry::OpenAt(home_, place, clock_, ToRead::kOpen).value();
  EXPECT_THAT(NumbersOf(*supervisors), ElementsAre(2));
  Bring(*supervisors, {2, 0}, RunState::kFinished);
  EXPECT_THAT(NumbersOf(*OpenOn("new")), ElementsAre(1, 2, 3)) << "a command reads the rest";
}

// As for a job that Slurm begins anew after its run was ended, on a host that takes MUSTER_HOME for its own.
TEST_F(SharedHomeTest, ASupervisorFindsItsRunAlsoIfItHasEnded) {
  auto a = OpenOn("a");
  Create(*a, Single());
  Bring(*a, {1, 0}, RunState::kFailed);
  const RegistryPlace place{
      .database = indexes_ / "new.db", .shared = false, .machine = MachineOf("new", "boot-of-new")};
  auto supervisors = Registry::OpenAt(home_, place, clock_, ToRead::kOpen).value();
  EXPECT_EQ(Get(*supervisors, {1, 0}).state, RunState::kFailed);
}

TEST_F(SharedHomeTest, AnotherHostNeverJudgesASupervisor) {
  auto a = OpenOn("a"), b = OpenOn("b");
  const ExperimentId id{Create(*a, Single()), 0};
  Bring(*a, id, RunState::kRunning);
  Age(home_.state(id), absl::Hours(10));
  EXPECT_THAT(*b->Reconcile(), IsEmpty()) << "nobody holds the lock, but that is a's lock";
  EXPECT_EQ(Get(*b, id).state, RunState::kRunning);
  EXPECT_GE(b->SinceRenewal(id).value(), absl::Hours(10));
  EXPECT_THAT(*a->Reconcile(), ElementsAre(id));
  EXPECT_EQ(Get(*b, id).reason, "its supervisor was killed");
}

// On a network file system a reader may see files as they were a moment ago, each another moment.
TEST_F(SharedHomeTest, AReaderWithAnOldViewChangesNothingAndComesToTheNewOne) {
  const auto write = [](const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  };
  const auto read = [](const std::string& path) { return PosixFileSystem().ReadFile(path).value(); };
  auto a = OpenOn("a"), has_seen_the_end = OpenOn("b");
  const ExperimentId id{Create(*a, Single()), 0};
  Bring(*a, id, RunState::kRunning);
  const std::string records = home_.records(id), state = home_.state(id), open = home_.open_marker(id.number);
  const std::string old_records = read(records), old_state = read(state);
  Bring(*a, id, RunState::kFinished);
  const std::string new_records = read(records);
  ASSERT_EQ(Get(*has_seen_the_end, id).state, RunState::kFinished);
  ASSERT_GT(new_records.size(), old_records.size());

  write(state, old_state);
  write(open, "");
  Age(state, absl::Hours(1));
  auto is_new = OpenOn("c");
  for (size_t bytes = old_records.size(); bytes < new_records.size(); ++bytes) {
    const std::string seen = new_records.substr(0, bytes);
    write(records, seen);
    EXPECT_EQ(Get(*is_new, id).state, RunState::kRunning) << bytes;
    for (Registry* const reader : {is_new.get(), has_seen_the_end.get()}) {
      EXPECT_THAT(*reader->Reconcile(), IsEmpty()) << bytes;
      EXPECT_TRUE(reader->Run(id).ok()) << bytes;
    }
    ASSERT_EQ(read(records), seen);
    ASSERT_EQ(read(state), old_state);
  }
  // The records are new before state.json is.
  write(records, new_records);
  for (Registry* const reader : {is_new.get(), has_seen_the_end.get()}) {
    EXPECT_EQ(Get(*reader, id).state, RunState::kFinished);
    EXPECT_THAT(NumbersOf(*reader, /*only_open=*/true), IsEmpty());
  }
  ASSERT_EQ(read(records), new_records);
  EXPECT_EQ(read(state), old_state);
}

TEST_F(SharedHomeTest, AHostThatHasBootedAgainJudgesWhatIsNotRenewed) {
  auto a = OpenOn("a");
  const ExperimentId id{Create(*a, Single()), 0};
  Bring(*a, id, RunState::kRunning);
  auto after = OpenOn("a", "another-boot");
  EXPECT_THAT(*after->Reconcile(), IsEmpty()) << "another host may have the same name";
  Age(home_.state(id), absl::Seconds(40));
  {
    const RunLock lock = TakeLock(id);
    EXPECT_THAT(*after->Reconcile(), IsEmpty());
  }
  EXPECT_THAT(*after->Reconcile(), ElementsAre(id));
  EXPECT_EQ(Get(*after, id).reason, "the machine was restarted");
}

TEST_F(SharedHomeTest, ARenewalKeepsTheState) {
  auto a = OpenOn("a");
  const ExperimentId id{Create(*a, Single()), 0};
  Bring(*a, id, RunState::kRunning);
  Age(home_.state(id), absl::Minutes(1));
  ASSERT_TRUE(a->Renew(id).ok());
  EXPECT_LT(a->SinceRenewal(id).value(), absl::Minutes(1));
  const std::string text = PosixFileSystem().ReadFile(home_.state(id)).value();
  EXPECT_THAT(text, ::testing::HasSubstr("\"state\": \"RUNNING\""));
}

TEST_F(SharedHomeTest, AnIndexThatIsLostIsMadeAnew) {
  {
    auto registry = Open();
    Create(*registry, Single());
    const int64_t grid = Create(*registry, Grid(2));
    Create(*registry, Single("other"));
    Bring(*registry, {1, 0}, RunState::kRunning);
    TaskRecord task{.task = {kWorkerJob, 1},
                    .state = RunState::kFailed,
                    .restarts = 3,
                    .exit = ExitStatus{.code = 3},
                    .reason = "\xff reason"};
    ASSERT_TRUE(SetTasks(*registry, {1, 0}, {task}).ok());
    ASSERT_THAT(*registry->TakeGpus({1, 0}, 2, {0, 1, 2}), SizeIs(2));
    Bring(*registry, {grid, 1}, RunState::kFailed);
    Bring(*registry, {3, 0}, RunState::kKilled);
  }
  const auto all = [this] {
    auto registry = Open();
    std::vector<std::string> rows;
    for (const char* sql :
         {"SELECT project || folder || tree || runs || file_name || options || hex(environment) || file_text"
          " FROM experiments ORDER BY number",
          "SELECT number || run || state || attempt || supervisor || machine || created_us || coalesce(ended_us, '')"
          " || exit_code || tree || output_dir || reason || parameters || run_id || records FROM runs"
          " ORDER BY number, run",
          "SELECT number || run || job || task || state || since_us || restarts || coalesce(exit_code, '')"
          " || hex(reason) FROM tasks ORDER BY id",
          "SELECT gpu || number || run FROM gpu_leases ORDER BY gpu"})
      for (const std::string& row : Sql(sql)) rows.push_back(row);
    return rows;
  };
  const auto before = all();
  EXPECT_THAT(before, SizeIs(3 + 5 + 1 + 2));
  for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(home_.database() + end);
  EXPECT_EQ(all(), before);
  EXPECT_EQ(Create(*Open(), Single()), 4);
}

// As when it dies between the two: the file has the change, the index hasn't.
TEST_F(SharedHomeTest, WhatAWriterLeftBehindItsIndexIsReadByTheNext) {
  ExperimentId id;
  {
    auto registry = Open();
    id.number = Create(*registry, Single());
    Bring(*registry, id, RunState::kRunning);
  }
  const std::string copy = indexes_ / "copy.db";
  std::filesystem::copy_file(home_.database(), copy);
  std::filesystem::copy_file(home_.database() + "-wal", copy + "-wal");
  Bring(*Open(), id, RunState::kFinished);
  const RegistryPlace behind{.database = copy, .shared = false, .machine = MachineId::This()};
  auto registry = Registry::OpenAt(home_, behind, clock_).value();
  EXPECT_EQ(Get(*registry, id).state, RunState::kFinished);
}

TEST_F(SharedHomeTest, AFileThatCannotBeReadIsPassedOver) {
  auto registry = Open();
  Create(*registry, Single());
  Create(*registry, Single());
  ASSERT_TRUE(ReplaceFile(home_.experiment_file(1), "{\"format\": 99}", Durability::kProcess).ok());
  auto other = OpenOn("other");
  EXPECT_THAT(NumbersOf(*other), ElementsAre(2));
}

// A process is killed at any moment while it writes; whatever it has said is there, in any host's index.
TEST_F(SharedHomeTest, AKilledWriterLeavesFilesThatEveryIndexReads) {
  constexpr int kRounds = 30;
  for (int round = 0; round < kRounds; ++round) {
    int said[2];
    ASSERT_EQ(pipe(said), 0);
    const pid_t writer = fork();
    if (writer == 0) {
      auto registry = OpenOn("a");
      for (;;) {
        const ExperimentId id{Create(*registry, round % 2 == 0 ? Single() : Grid(2)), 0};
        for (const RunState state : {RunState::kPending, RunState::kStarting, RunState::kRunning, RunState::kFinished})
          if (!SetState(*registry, id, state).ok()) _exit(1);
        if (write(said[1], &id.number, sizeof id.number) != sizeof id.number) _exit(2);
      }
    }
    close(said[1]);
    int64_t ended = 0;
    for (int i = 0; i <= round % 3; ++i) ASSERT_EQ(read(said[0], &ended, sizeof ended), sizeof ended);
    for (int i = 0; i < round * 5; ++i) sched_yield();
    ASSERT_EQ(kill(writer, SIGKILL), 0);
    ASSERT_EQ(waitpid(writer, nullptr, 0), writer);
    while (read(said[0], &ended, sizeof ended) == sizeof ended) continue;
    close(said[0]);
    auto b = OpenOn("b");
    EXPECT_EQ(Get(*b, {ended, 0}).state, RunState::kFinished);
    auto a = OpenOn("a");
    ASSERT_TRUE(a->Reconcile().ok());
    ASSERT_TRUE(b->Reconcile().ok());
    EXPECT_EQ(NumbersOf(*a), NumbersOf(*b));
    EXPECT_THAT(NumbersOf(*b, /*only_open=*/true), IsEmpty());
  }
}

}  // namespace
}  // namespace muster::shared_home_test
