// Experiments for which the machine lacks something: memory for a task, room for its log, permission to write. Also as
// many lines as there is room for, none of which may be lost. The tests wait for events (a line, a FIFO, a lock), never
// for time.
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/process/testing/engines.h"

namespace muster::experiment_limits_test {
namespace {

using nlohmann::json;
using ::testing::AllOf, ::testing::AnyOf, ::testing::Contains, ::testing::ContainsRegex, ::testing::HasSubstr,
    ::testing::Not;

// A mount on a folder that only this process and its children see.
class OwnMount {
 public:
  // Arguments as in mount(2); `changed` are flags that only a second call can set. Check made().
  OwnMount(const std::string& source, std::string folder, const char* type, unsigned long flags, const char* data,
           unsigned long changed = 0)
      : folder_(std::move(folder)) {
    made_ = unshare(CLONE_NEWNS) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
            mount(source.c_str(), folder_.c_str(), type, flags, data) == 0;
    if (made_ && changed != 0) {
      EXPECT_EQ(mount("none", folder_.c_str(), nullptr, MS_REMOUNT | flags | changed, nullptr), 0);
    }
  }
  ~OwnMount() { End(); }
  OwnMount(const OwnMount&) = delete;
  OwnMount& operator=(const OwnMount&) = delete;

  bool made() const { return made_; }
  void End() {
    if (made_) {
      EXPECT_EQ(umount2(folder_.c_str(), MNT_DETACH), 0) << folder_;
    }
    made_ = false;
  }

 private:
  const std::string folder_;
  bool made_ = false;
};

constexpr char kMayNotMount[] = "only root may mount, and not in every container";

// How much of the lines "1", "2", … of a task `muster logs` shows.
struct Counted {
  std::vector<int64_t> kept;
  int64_t missing = 0;  // as the log says
};

Counted CountLines(const std::string& shown, const std::string& name) {
  constexpr absl::string_view kMissing = " lines are missing here: no space left on device";
  Counted counted;
  for (const absl::string_view line : absl::StrSplit(shown, '\n')) {
    const size_t bar = line.find(" | ");
    if (bar == absl::string_view::npos) continue;
    const absl::string_view text = line.substr(bar + 3);
    if (!absl::StartsWith(line, absl::StrCat(name, " "))) continue;
    int64_t number = 0;
    if (absl::SimpleAtoi(text, &number)) {
      counted.kept.push_back(number);
    } else if (absl::EndsWith(text, kMissing) && absl::SimpleAtoi(text.substr(0, text.find(' ')), &number)) {
      counted.missing += number;
    }
  }
  return counted;
}

// Expects 1 to `count`, each once and in order.
void ExpectAll(const std::string& shown, const std::string& name, int64_t count) {
  const Counted counted = CountLines(shown, name);
  EXPECT_EQ(counted.missing, 0) << name;
  ASSERT_EQ(counted.kept.size(), static_cast<size_t>(count)) << name;
  for (size_t i = 0; i < counted.kept.size(); ++i) ASSERT_EQ(counted.kept[i], static_cast<int64_t>(i) + 1) << name;
}

// The disk of MUSTER_HOME, which is this machine's. That of a host: SshExperiment.AFullDiskOfAHostIsTheTasksOwnFailure.
class ExperimentLimits : public ExperimentsTest {
 protected:
  // Mounts it on MUSTER_HOME.
  bool MountHome(const std::string& source, const char* type, unsigned long flags, const char* data,
                 unsigned long changed = 0) {
    std::filesystem::create_directories(home());
    mount_.emplace(source, home(), type, flags, data, changed);
    return mount_->made();
  }

  std::optional<OwnMount> mount_;
};

class ExperimentLimitsOnEngines : public OnEveryEngine {};

// muster's own programs know the limit of a task without being told by the kernel.
class ExperimentModelLimits : public OnEveryEngine {};
INSTANTIATE_TEST_SUITE_P(, ExperimentModelLimits, ::testing::Values("local", "ssh"), EngineName);

INSTANTIATE_TEST_SUITE_P(, ExperimentLimitsOnEngines, EveryEngine(), EngineName);

TEST_P(ExperimentLimitsOnEngines, ATaskOverItsMemoryIsReportedAsSuch) {
  WriteExperiment(
      "torchrun: {workers: 2}\nresources: {mem: 64MB}\nrestart: {limit: 5, backoff: 1ms}\nrun: |\n"
      "  if [ $RANK = 0 ]; then while :; do sleep 1000; done; fi\n"
      "  python3 -c 'import signal; held = b\"x\" * (200 << 20); print(\"holds it\", flush=True); signal.pause()'");
  const Said said = Muster({"train"});
  EXPECT_EQ(said.exit_code, 137) << said.out << said.err;
  constexpr char kWhy[] = "used more than its 64 MB of memory";
  EXPECT_THAT(said.err, AllOf(HasSubstr("worker.2 was killed by signal 9"), HasSubstr(kWhy)));
  EXPECT_THAT(said.out, HasSubstr(absl::StrCat("it ", kWhy, ": ending the others (worker.1)")));
  // If a control group limits it, it can't have come so far.
  if (absl::StrContains(said.out, "holds it")) {
    EXPECT_THAT(said.out, HasSubstr("tasks' memory is checked once a second"));
  }
  const json status = Json({"status", "1"});
  EXPECT_EQ(status["state"], "FAILED");
  EXPECT_THAT(status["reason"].get<std::string>(), AllOf(HasSubstr("worker.2"), HasSubstr(kWhy)));
  const json& worker = status["tasks"][1];
  EXPECT_EQ(worker["id"], "1.worker.2");
  EXPECT_EQ(worker["reason"], kWhy);
  EXPECT_EQ(worker["exit_code"], 137);
  EXPECT_EQ(worker["restarts"], 0) << "it would again";
  EXPECT_EQ(status["tasks"][0]["state"], "KILLED");
}

TEST_P(ExperimentModelLimits, AModelThatItsPsMayNotHaveIsRefusedBeforeTrainingWithBothNumbers) {
  const Said said = TrainALargerModelThanItsPsMayHave();
  EXPECT_NE(said.exit_code, 137) << "nothing was killed";
  EXPECT_THAT(said.out,
              ContainsRegex("no memory for the model: [1-9][0-9]+ MiB are needed for variables, slots and undo "
                            "\\((its limit of 100 MiB|the limit of this process's control group) leaves [1-9][0-9]* "
                            "MiB\\)"));
  EXPECT_EQ(StateOf("1"), "FAILED");
}

TEST_F(ExperimentLimits, AFullDiskStopsNobodyAndWhatIsMissingIsCounted) {
  constexpr int64_t kLines = 400000;  // several times as much as there is room for
  if (!MountHome("none", "tmpfs", 0, "size=6m,mode=700")) GTEST_SKIP() << kMayNotMount;
  const std::string filler = home() + "/filler";
  std::ofstream(filler) << std::string(2000000, 'x');
  const ScriptGate written(Aside("written"));
  const ScriptGate gate(Aside("gate"));
  WriteExperiment(absl::StrCat("run:\n- seq ", kLines, "\n- echo > ", written.path(), "\n- read line < ", gate.path(),
                               "\n- echo last"));
  const auto train = StartMuster({"train"});
  Process waiting({"/bin/sh", "-c", "read line < " + written.path()});
  ASSERT_EQ(waiting.Wait(), 0) << "the task doesn't go on";
  struct statvfs disk = {};
  ASSERT_EQ(statvfs(home().c_str(), &disk), 0);
  EXPECT_EQ(disk.f_bavail, 0) << "the test has to fill it";
  EXPECT_EQ(StateOf("1"), "RUNNING");
  Write("more", "which has to be copied");
  const Said other = Muster({"train"});
  EXPECT_EQ(other.exit_code, 1) << other.out;
  EXPECT_THAT(other.err, AllOf(HasSubstr(home()), HasSubstr("make room"), HasSubstr("No space left on device")));
  ASSERT_TRUE(std::filesystem::remove(filler));
  gate.LetThrough();
  EXPECT_EQ(train->Wait(), 0) << train->err;
  const std::string shown = Out({"logs", "1"});
  for (const std::string& lines : {train->out, shown}) {
    const Counted counted = CountLines(lines, "1.master");
    EXPECT_GT(counted.missing, 0);
    EXPECT_EQ(static_cast<int64_t>(counted.kept.size()) + counted.missing, kLines);
    EXPECT_TRUE(std::is_sorted(counted.kept.begin(), counted.kept.end()));
  }
  EXPECT_THAT(LinesOf(shown, "1.master"), AllOf(Contains("1"), Contains("last"), Contains("--> FINISHED")));
  const json status = Json({"status", "1"});
  EXPECT_EQ(status["state"], "FINISHED");
  EXPECT_EQ(status["tasks"][0]["state"], "FINISHED");
  EXPECT_EQ(Json({"ls", "--all"}).size(), 1) << "the other has left nothing";
}

// The queue has taken the job by then.
TEST_F(ExperimentLimits, AnExperimentIsSaidToBeThereWhenTheDiskIsFullAfterItsJobWasSubmitted) {
  if (!MountHome("none", "tmpfs", 0, "size=4m,mode=700")) GTEST_SKIP() << kMayNotMount;
  const std::string filler = home() + "/filler", cancelled = Aside("cancelled");
  WriteProgram("sbatch", absl::StrCat("cat /dev/zero >", filler, " 2>/dev/null; echo 17"));
  WriteProgram("squeue", "exit 0");
  const std::string programs = WriteProgram("scancel", absl::StrCat("echo $* >", cancelled));
  environment_ = {absl::StrCat("PATH=", programs, ":", getenv("PATH"))};
  WriteExperiment("run: echo hello");
  const Said train = Muster({"train", "--on", "slurm"});
  EXPECT_EQ(train.exit_code, 1) << train.out << train.err;
  EXPECT_THAT(train.err, AllOf(HasSubstr("job 17 of Slurm was submitted"), HasSubstr("it was ended again"),
                               HasSubstr("make room"), Not(HasSubstr("nothing was changed"))));
  EXPECT_EQ(Read(cancelled), "17\n");
  ASSERT_TRUE(std::filesystem::remove(filler));
  Muster({"status", "1"});  // says how it has ended if that couldn't be written before
  const json status = Json({"status", "1"});
  EXPECT_EQ(status["state"], "FAILED");
  // The end itself may have found a bit of room.
  EXPECT_THAT(status["reason"].get<std::string>(),
              AnyOf(HasSubstr("job 17 of Slurm was submitted"), HasSubstr("or its disk was full")));
}

// A host that has no index of it yet, and no room for one.
class ExperimentsOnAFullDisk : public ExperimentLimits {
 protected:
  void SetUp() override {
    if (!MountHome("none", "tmpfs", 0, "size=2m,mode=700")) GTEST_SKIP() << kMayNotMount;
    WriteExperiment("run: echo hello");
    Out({"train"});
    for (const char* name : {"/index.db", "/index.db-wal", "/index.db-shm"})
      ASSERT_TRUE(std::filesystem::remove(home() + name)) << name;
    std::ofstream(filler()) << std::string(4000000, 'x');
    struct statvfs disk = {};
    ASSERT_EQ(statvfs(home().c_str(), &disk), 0);
    ASSERT_EQ(disk.f_bavail, 0) << "the test has to fill it";
  }
  std::string filler() const { return home() + "/filler"; }
};

TEST_F(ExperimentsOnAFullDisk, AllIsShownAndNothingIsBegun) {
  EXPECT_EQ(StateOf("1"), "FINISHED");
  EXPECT_THAT(LinesOf(Out({"logs", "1"}), "1.master"), Contains("hello"));
  EXPECT_EQ(Json({"ls", "--all"}).size(), 1);
  const Said train = Muster({"train"});
  EXPECT_EQ(train.exit_code, 1) << train.out;
  EXPECT_THAT(train.err, AllOf(HasSubstr(home()), HasSubstr("make room")));
  ASSERT_TRUE(std::filesystem::remove(filler()));
  Out({"train"});
  EXPECT_EQ(Json({"ls", "--all"}).size(), 2);
}

// As on a node of Slurm. There is nothing to do for this one: its experiment has ended.
TEST_F(ExperimentsOnAFullDisk, ASupervisorThatBeginsWaitsForRoomAndSaysSo) {
  environment_ = {"SLURM_JOB_ID=17", "SLURM_JOB_NODELIST=h1", "SLURM_JOB_CPUS_PER_NODE=4"};
  const auto asked = StartMuster({"supervise", "1", "--in_job", "slurm"});
  const auto waits = StartMuster({"supervise", "1", "--in_job", "slurm"});
  for (Process* supervisor : {asked.get(), waits.get()})
    supervisor->WaitForErr("the experiment waits until there is some");
  asked->Signal(SIGTERM);
  EXPECT_EQ(asked->Wait(), 1) << asked->err;
  EXPECT_THAT(asked->err, HasSubstr("make room"));
  ASSERT_TRUE(std::filesystem::remove(filler()));
  EXPECT_EQ(waits->Wait(), 0) << waits->err;
}

// There is no room for the second run when its turn comes: it waits and says so, and begins once there is.
TEST_F(ExperimentLimits, AGridWaitsForRoomOnTheDisk) {
  if (!MountHome("none", "tmpfs", 0, "size=60m,mode=700")) GTEST_SKIP() << kMayNotMount;
  const ScriptGate gate(Aside("gate"));
  WriteExperiment("parameters: {x: [1, 2, 3]}\nrun: echo begun $X; read line < " + gate.path());
  const auto train = StartMuster({"train"});
  train->WaitForOut("begun 1");
  const std::string folder = home() + "/experiments/1/runs/2";
  std::filesystem::create_directories(folder);
  ASSERT_EQ(mount("none", folder.c_str(), "tmpfs", 0, "nr_inodes=1"), 0) << "in which no file can be made";
  gate.LetThrough();
  train->WaitForOut("run 1.2 waits, trying again and again: ");
  EXPECT_EQ(StateOf("1.2"), "CREATED");
  ASSERT_EQ(umount2(folder.c_str(), MNT_DETACH), 0);
  gate.LetThrough(2);
  EXPECT_EQ(train->Wait(), 0) << train->out << train->err;
  EXPECT_THAT(train->out, AllOf(HasSubstr("begun 2"), HasSubstr("begun 3"), Not(HasSubstr("FAILED"))));
  EXPECT_EQ(StateOf("1"), "FINISHED");
}

TEST_P(ExperimentLimitsOnEngines, AMillionLinesAreAllThere) {
  constexpr int64_t kLinesOfEach = 500000;
  WriteExperiment(absl::StrCat("torchrun: {workers: 2}\nrun: seq ", kLinesOfEach));
  const std::string followed = Out({"train"});
  const std::string shown = Out({"logs", "1"});
  for (const std::string name : {"1.worker.1", "1.worker.2"}) {
    ExpectAll(followed, name, kLinesOfEach);
    ExpectAll(shown, name, kLinesOfEach);
    EXPECT_EQ(StatesOf(shown, name).back(), "FINISHED");
  }
  EXPECT_GE(EntriesOf(Json({"show", "1"})["logs"].get<std::string>() + "/worker.1").size(), 2U) << "across files";
}

TEST_F(ExperimentLimits, AHomeThatCanOnlyBeReadIsNamedAndStartsNothing) {
  WriteExperiment("run: echo hello");
  Out({"train"});
  if (!MountHome(home(), nullptr, MS_BIND, nullptr, MS_RDONLY)) GTEST_SKIP() << kMayNotMount;
  for (const std::string command : {"train", "rerun", "kill"}) {
    const Said said = Muster({command});
    EXPECT_EQ(said.exit_code, 2) << command << "\n" << said.out;
    EXPECT_THAT(said.err, AllOf(HasSubstr(home()), HasSubstr("Read-only file system"))) << command;
    EXPECT_THAT(said.out, Not(HasSubstr("CREATED")));
  }
  mount_->End();
  EXPECT_EQ(Json({"ls", "--all"}).size(), 1);
}

}  // namespace
}  // namespace muster::experiment_limits_test
