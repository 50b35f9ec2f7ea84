// What a user can get wrong, and what the programs answer: the exit code, and one line that names what was given and
// what is accepted. The programs are the command and toy_worker, which reads its place in the cluster as every program
// does.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "muster/base/files/file_system.h"
#include "muster/base/testing/built_at.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/store/service/store_service.h"
#include "muster/transport/tcp/tcp_transport.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/process.h"
#include "tests/process/testing/small_disk.h"
#include "tests/process/testing/update_way_flags.h"

namespace muster::bad_input_test {
namespace {

using ::testing::HasSubstr;

const std::string kMuster = BinFolder() + "/muster";
const std::string kToyWorker = BinFolder() + "/toy_worker";

// Expects exit code 2 before anything is started, and the reason in exactly one line.
void ExpectUsageError(const std::vector<std::string>& words, const ProcessOptions& options,
                      const std::vector<std::string>& texts) {
  Process process(words, options);
  EXPECT_EQ(process.Wait(), 2) << process.err;
  EXPECT_EQ(process.out, "");
  EXPECT_EQ(process.err.find('\n'), process.err.size() - 1) << process.err;
  for (const std::string& text : texts) EXPECT_THAT(process.err, HasSubstr(text)) << words[0];
}

// Expects exit code `code`, and that only the last line is an error.
void ExpectFailure(Process& process, int code, const std::vector<std::string>& texts) {
  EXPECT_EQ(process.Wait(), code) << process.err;
  const size_t start = process.err.size() < 2 ? 0 : process.err.rfind('\n', process.err.size() - 2) + 1;
  const std::string last = process.err.substr(start);
  EXPECT_TRUE(absl::StartsWith(last, "toy_worker: ") || absl::StartsWith(last, "muster ps: ")) << process.err;
  for (const std::string& text : texts) EXPECT_THAT(last, HasSubstr(text));
  EXPECT_LE(After(process.err, "toy_worker: ").size(), 1) << process.err;
}

struct Mistake {
  std::string tf_config;
  std::vector<std::string> texts;
};

std::vector<Mistake> MistakesInTfConfig() {
  const std::string cluster = R"("cluster": {"ps": ["h:1"], "worker": ["h:2", "h:3"]})";
  const auto task = [&cluster](const std::string& json) { return "{" + cluster + ", \"task\": " + json + "}"; };
  return {
      {"{oops", {"TF_CONFIG", "JSON"}},
      {"[1, 2]", {"TF_CONFIG", "accepted: {\"cluster\""}},
      {R"({"cluster": 7})", {"TF_CONFIG cluster", "7"}},
      {R"({"cluster": {"ps": "h:1"}})", {"TF_CONFIG cluster", "ps", "h:1"}},
      {R"({"cluster": {"ps": [2222]}})", {"TF_CONFIG cluster", "ps", "2222"}},
      {task("3"), {"TF_CONFIG task", "3 is not a task"}},
      {task(R"({"type": 1, "index": 0})"), {"TF_CONFIG task.type", "1 is not a job"}},
      {task(R"({"type": "wroker", "index": 0})"), {"TF_CONFIG task.type", "wroker", "ps, worker, evaluator"}},
      {task(R"({"type": "worker", "index": 2})"), {"TF_CONFIG task.index", "2 is out of range", "worker:0-1"}},
      {task(R"({"type": "worker", "index": -1})"), {"TF_CONFIG task.index", "-1 is negative"}},
      {task(R"({"type": "worker", "index": 0.5})"), {"TF_CONFIG task.index", "0.5 is a fraction"}},
      {task(R"({"type": "worker", "index": "one"})"), {"TF_CONFIG task.index", "one"}},
      {task(R"({"type": "worker", "index": [0]})"), {"TF_CONFIG task.index", "a list is not a task index"}},
      {task(R"({"index": 0})"), {"TF_CONFIG task.type", "not set"}},
      {task(R"({"type": "worker"})"), {"TF_CONFIG task.index", "not set"}},
      {"{" + cluster + "}", {"TF_CONFIG task.type", "not set"}},
      {R"({"cluster": {"chief": ["h:1"], "master": ["h:2"]}, "task": {"type": "chief", "index": 0}})",
       {"TF_CONFIG cluster", "both a chief and a master"}},
      {R"({"cluster": {"chief": ["h:1", "h:2"]}, "task": {"type": "chief", "index": 0}})",
       {"TF_CONFIG cluster", "2 tasks of job chief", "accepted: one"}},
      {R"({"cluster": {"master": ["h:1"], "ps": ["h:2"]}, "task": {"type": "evaluator", "index": 0}})",
       {"TF_CONFIG task.type", "evaluator", "master"}},
      {R"({"cluster": {"ps": ["h:1"]}, "task": {"type": "ps", "index": 0}})", {"neither chief nor worker"}},
      {R"({"task": {"type": "ps", "index": 0}})", {"TF_CONFIG task.type", "ps", "without a cluster"}},
      {R"({"cluster": {"ps": ["h:1"], "worker": ["h:1"]}, "task": {"type": "ps", "index": 0}})",
       {"TF_CONFIG cluster", "h:1", "ps:0"}},
      {R"({"cluster": {"ps": ["h"], "worker": ["h:1"]}, "task": {"type": "ps", "index": 0}})",
       {"TF_CONFIG cluster", "\"h\""}},
      {R"({"cluster": {"ps": ["h:99999"], "worker": ["h:1"]}, "task": {"type": "ps", "index": 0}})",
       {"TF_CONFIG cluster", "h:99999", "port"}},
  };
}

TEST(BadInput, TfConfig) {
  for (const Mistake& mistake : MistakesInTfConfig()) {
    SCOPED_TRACE(mistake.tf_config);
    const ProcessOptions options{.environment = {{"TF_CONFIG", mistake.tf_config}}};
    ExpectUsageError({kMuster, "cluster"}, options, mistake.texts);
    ExpectUsageError({kMuster, "ps"}, options, mistake.texts);
    ExpectUsageError({kToyWorker}, options, mistake.texts);
  }
}

TEST(BadInput, ATypingMistakeIsNamedWithTheNearestCommandOrFlag) {
  ExpectUsageError({kMuster, "trian"}, {}, {"unknown command \"trian\" (nearest: train)"});
  ExpectUsageError({kMuster, "train", "--parm=a=3"}, {}, {"unknown argument \"--parm=a=3\" (nearest: --param)"});
}

TEST(BadInput, ARunsMistypedFlagIsNamedWithTheNearest) {
  ExpectUsageError({kMuster, "run", "--worker", "2", "--", "true"}, {},
                   {"muster run: '--worker'", "(nearest: --workers)"});
  ExpectUsageError({kMuster, "run", "--worker=2", "--", "true"}, {}, {"(nearest: --workers)"});
}

TEST(BadInput, ErrorsBeginWithTheProgramsNameWithoutItsFolder) {
  const ProcessOptions nonsense{.environment = {{"TF_CONFIG", "{oops"}}};
  Process toy({kToyWorker}, nonsense);
  EXPECT_EQ(toy.Wait(), 2);
  EXPECT_THAT(toy.err, ::testing::StartsWith("toy_worker: TF_CONFIG"));
  Process muster({kMuster, "cluster"}, nonsense);
  EXPECT_EQ(muster.Wait(), 2);
  EXPECT_THAT(muster.err, ::testing::StartsWith("muster cluster: TF_CONFIG"));
}

TEST(BadInput, ANumberIsAskedForInWords) {
  ExpectUsageError({kMuster, "gc", "--keep", "x"}, {},
                   {"muster gc: --keep: 'x': accepted is a whole number from 0; see muster gc --help\n"});
  ExpectUsageError({kMuster, "gc", "--older-than=-1"}, {},
                   {"'-1': accepted is a number of days from 0 to 1000000; see"});
}

TEST(BadInput, AFileToPlaceThatIsNotThere) {
  ExpectUsageError({kMuster, "place", "--ps=2", "nosuch.json"}, {}, {"muster place: FILE: ", "muster place --help"});
}

TEST(BadInput, FlagsOfTheSimulation) {
  const std::string simulate = BinFolder() + "/muster_simulate";
  ExpectUsageError({simulate, "--sed=1"}, {}, {"simulate: unknown argument \"--sed=1\"", "see ./dev simulate --help"});
  ExpectUsageError({simulate, "--seed=x"}, {}, {"simulate: ", "--seed", "x", "see ./dev simulate --help"});
  ExpectUsageError({simulate, "--ps=4"}, {}, {"simulate: --ps", "4", "1 to 3"});
  ExpectUsageError({simulate, "--faults=a"}, {}, {"simulate: --faults is 'a'", "none"});
  ExpectUsageError({simulate, "--plant=weeds"}, {}, {"simulate: ", "weeds", "count-early"});
}

TEST(BadInput, Flags) {
  ExpectUsageError({kMuster, "ps", "--prot=1"}, {}, {"\"--prot=1\"", "see muster ps --help"});
  ExpectUsageError({kMuster, "ps", "--job_name"}, {}, {"--job_name has no value", "accepted"});
  ExpectUsageError({kMuster, "ps"}, {}, {"not a ps", "--job_name=ps"});
  ExpectUsageError({kMuster, "ps", "--ps_hosts=a:1", "--worker_hosts=b:1", "--job_name=worker", "--task_index=0"}, {},
                   {"worker:0", "not a ps"});
  ExpectUsageError({kMuster, "ps", "--json"}, {}, {"--json", "--status"});
  ExpectUsageError({kMuster, "ps", "--apply=direct"}, {}, {"--apply", "\"direct\"", "server, auto"});
  ExpectUsageError({kMuster, "ps", "--transport=udp"}, {}, {"--transport", "\"udp\"", "auto, tcp"});
  ExpectUsageError({kMuster, "ps", "--status"}, {}, {"--status"});
  ExpectUsageError({kMuster, "ps", "--status", "nonsense"}, {}, {"nonsense", "host:port"});
  ExpectUsageError({kMuster, "ps", "--shutdown", "a:b"}, {}, {"a:b", "port"});
  ExpectUsageError({kMuster}, {}, {"no command", "run, ps"});
  ExpectUsageError({kMuster, "trian"}, {}, {"trian"});
  ExpectUsageError({kToyWorker, "--task_index=x", "--job_name=worker", "--worker_hosts=a:1"}, {},
                   {"--task_index", "x", "whole number"});
}

TEST(BadInput, APortInUse) {
  ByHand cluster(1, 1);
  ServingPs first(cluster, 0);
  Process second(Joined({kMuster, "ps"}, cluster.Flags("ps", 0)));
  ExpectFailure(second, 1, {cluster.ps_address(0), "in use"});
  Process third(Joined({kToyWorker}, cluster.Flags("ps", 0)));
  ExpectFailure(third, 1, {cluster.ps_address(0), "in use"});
}

TEST(BadInput, AnAddressOfAnotherMachine) {
  Process ps(
      {kMuster, "ps", "--ps_hosts=192.0.2.1:2222", "--worker_hosts=192.0.2.2:2222", "--job_name=ps", "--task_index=0"},
      {.environment = {{"MUSTER_JOB_TOKEN", "the token of a job"}}});
  ExpectFailure(ps, 1, {"192.0.2.1:2222"});
}

TEST(BadInput, ATokenThatCouldBeGuessed) {
  const ProcessOptions short_token{.environment = {{"MUSTER_JOB_TOKEN", "secret"}}};
  for (const std::vector<std::string>& words :
       {Joined({kMuster, "ps"}, ByHand(1, 1).Flags("ps", 0)), Joined({kToyWorker}, ByHand(1, 1).Flags("worker", 0)),
        std::vector<std::string>{kMuster, "ps", "--status", "127.0.0.1:1"}}) {
    Process process(words, short_token);
    ExpectFailure(process, 2, {"MUSTER_JOB_TOKEN has 6 characters", "at least 16", "openssl rand -hex 32"});
  }
  ExpectUsageError({kMuster, "run", "--workers", "1", "--", "true"}, short_token,
                   {"MUSTER_JOB_TOKEN has 6 characters", "openssl rand -hex 32"});
}

TEST(BadInput, NoTokenBeyondThisMachine) {
  Process ps({kMuster, "ps", "--ps_hosts=0.0.0.0:0", "--worker_hosts=h:2", "--job_name=ps", "--task_index=0"});
  EXPECT_NE(ps.Wait(), 0);
  EXPECT_EQ(ps.err.find('\n'), ps.err.size() - 1) << ps.err;
}

TEST(BadInput, AClusterWithoutPs) {
  ByHand cluster(0, 2);
  Process worker(Joined({kToyWorker}, cluster.Flags("worker", 1)));
  ExpectFailure(worker, 2, {"no ps", "--ps_hosts"});
}

TEST(BadInput, APsThatCannotBeReached) {
  ByHand cluster(1, 1);
  const std::string ps = "ps:0 (" + cluster.ps_address(0) + ")";
  Process worker(Joined({kToyWorker}, Joined(cluster.Flags("worker", 0), {"--patience=8"})));
  ExpectFailure(worker, 138, {ps + " could not be reached within ", "connection refused"});
  EXPECT_THAT(worker.err, HasSubstr("waiting since 5s for " + ps + ": connection refused; giving up in "));
  Process status({kMuster, "ps", "--status", cluster.ps_address(0)});
  ExpectFailure(status, 138, {cluster.ps_address(0), "refused"});
}

// Runs with every way of sending an update.
class BadInputByWay : public ::testing::TestWithParam<UpdateWay> {
 protected:
  static std::vector<std::string> Toy(const std::vector<std::string>& flags) {
    return Joined({kToyWorker}, Joined(FlagsOf(GetParam()), flags));
  }
};

INSTANTIATE_TEST_SUITE_P(Ways, BadInputByWay, ::testing::ValuesIn(kWholeWays), NameOfWay);

TEST_P(BadInputByWay, APsOfAnotherJob) {
  ByHand cluster(1, 1);
  const auto token = [](const char* value) { return ProcessOptions{.environment = {{"MUSTER_JOB_TOKEN", value}}}; };
  ServingPs ps(cluster, 0, {}, token("the token of our job"));
  Process worker(Toy(cluster.Flags("worker", 0)), token("the token of their job"));
  ExpectFailure(worker, 1, {"ps:0 (" + cluster.ps_address(0) + ")", "another job", "MUSTER_JOB_TOKEN"});
  Process status({kMuster, "ps", "--status", cluster.ps_address(0)});
  ExpectFailure(status, 1,
                {cluster.ps_address(0), "another job", "MUSTER_JOB_TOKEN", "export the same MUSTER_JOB_TOKEN before"});
}

TEST(BadInput, APsOfAnotherVersion) {
  ByHand cluster(1, 1);
  const std::vector<std::string> flags = cluster.Flags("ps", 0);
  // Imitates a ps of a later muster in this process.
  TcpEventLoop loop;
  TcpTransport transport(loop, {}, {.protocol_version = 9, .build_version = "muster 9.9"});
  StoreService service(loop, {.workers = {"worker:0"},
                              .files = &PosixFileSystem(),
                              .background = [](absl::AnyInvocable<void()> task) { task(); }});
  const auto listener = transport.Listen(cluster.ps_address(0), service).value();
  bool stop = false;
  std::thread serving([&] { loop.RunUntil([&] { return stop; }, absl::InfiniteFuture()); });
  Process worker(Joined({kToyWorker}, cluster.Flags("worker", 0)));
  ExpectFailure(worker, 1, {"ps:0 (" + cluster.ps_address(0) + ")", "9", "muster 9.9"});
  loop.Post([&] { stop = true; });
  serving.join();
}

TEST(BadInput, AnotherServerOnThePort) {
  ByHand cluster(1, 1);
  const std::vector<std::string> flags = cluster.Flags("worker", 0);
  (void)cluster.Flags("ps", 0);
  const int port = std::stoi(cluster.ps_address(0).substr(cluster.ps_address(0).find(':') + 1));
  Process other({"/usr/bin/env", "python3", "-u", "-m", "http.server", "--bind", "127.0.0.1", std::to_string(port)});
  other.WaitForOut("Serving HTTP");
  Process worker(Joined({kToyWorker}, flags));
  ExpectFailure(worker, 1, {"ps:0 (" + cluster.ps_address(0) + ")", "doesn't speak muster's protocol"});
}

TEST_P(BadInputByWay, AWorkerWithAnotherModel) {
  ByHand cluster(1, 2);
  ServingPs ps(cluster, 0);
  Process chief(Toy(Joined(cluster.Flags("worker", 0), {"--steps=3000"})));
  chief.WaitForErr("loss = ");
  Process worker(Toy(Joined(cluster.Flags("worker", 1), {"--width=5"})));
  ExpectFailure(worker, 1, {"the model of worker:1 differs", "'w' float32[5]", "'w' float32[1000]"});
  Process rate(Toy(Joined(cluster.Flags("worker", 1), {"--learning_rate=1"})));
  ExpectFailure(rate, 1, {"worker:1", "learning_rate 1", "learning_rate 0.01"});
  EXPECT_EQ(chief.Wait(), 0);
  EXPECT_EQ(ps.Wait(), 0) << ps.err;
}

TEST_P(BadInputByWay, AWorkerThatThePsDoNotKnow) {
  ByHand cluster(1, 1);
  ServingPs ps(cluster, 0);
  Process worker(
      Toy({"--ps_hosts=" + cluster.ps_address(0), "--worker_hosts=a:1,a:2", "--job_name=worker", "--task_index=1"}));
  ExpectFailure(worker, 1, {"ps:0 (" + cluster.ps_address(0) + ")", "worker:1", "worker:0", "same cluster"});
}

// A user's hook with a bug.
struct Throw {
  const char* in;
  const char* method;
  const char* saved;  // the newest checkpoint; empty: none
  int goes_on_from;   // the first step of the replacement; 0: training has ended
};

std::string NewestIn(const ScratchFolder& model) {
  const auto newest = LatestCheckpoint(PosixFileSystem(), model.path()).value();
  return newest ? *newest : "";
}

class ThrowingHookTest : public ::testing::TestWithParam<Throw> {};

INSTANTIATE_TEST_SUITE_P(Methods, ThrowingHookTest,
                         ::testing::Values(Throw{"begin", "Begin", "", 1},
                                           Throw{"after_create", "AfterCreateSession", "model.ckpt-0", 1},
                                           Throw{"before_run", "BeforeRun", "model.ckpt-3", 5},
                                           Throw{"after_run", "AfterRun", "model.ckpt-3", 6},
                                           Throw{"end", "End", "model.ckpt-10", 0}),
                         [](const auto& info) { return std::string(info.param.method); });

// Behaves as the table of docs/sessions.md says.
TEST_P(ThrowingHookTest, FailsItsSessionAndTrainingCanGoOn) {
  const Throw& thrown = GetParam();
  ByHand cluster(1, 1);
  ScratchFolder model;
  ServingPs ps(cluster, 0);
  const std::vector<std::string> chief =
      Joined({kToyWorker, "--steps=10", "--save_steps=3", "--model_dir=" + model.path()}, cluster.Flags("worker", 0));
  Process first(Joined(chief, {std::string("--throw_in=") + thrown.in}));
  ExpectFailure(first, 1, {std::string("a hook's ") + thrown.method + " threw: thrown in " + thrown.in});
  EXPECT_EQ(NewestIn(model), *thrown.saved == 0 ? "" : model / thrown.saved);
  if (thrown.goes_on_from > 0) {
    Process second(chief);
    EXPECT_EQ(second.Wait(), 0) << second.err;
    // Only a process's first line has no seconds.
    EXPECT_THAT(second.err, HasSubstr(", step = " + std::to_string(thrown.goes_on_from) + "\n"));
    EXPECT_EQ(NewestIn(model), model / "model.ckpt-10");
  }
  EXPECT_EQ(ps.Wait(), 0) << ps.err;
  EXPECT_THAT(ps.err, HasSubstr("training has ended: every task is done"));
}

// Held like another process's writer: the kernel keeps the lock, whichever process takes it.
TEST(BadInput, ASummaryDirectoryThatAnotherWriterHolds) {
  ScratchFolder model;
  const auto held = PosixFileSystem().Lock(model / ".summary_writer.lock", "process 4711 on elsewhere").value();
  Process toy({kToyWorker, "--model_dir=" + model.path(), "--steps=20"});
  ExpectFailure(toy, 2, {model.path() + " has a writer already: process 4711 on elsewhere", "another summary_dir"});
}

// Checkpoints of a process that trains alone.
class BadCheckpoint : public testing::Test {
 protected:
  void SetUp() override {
    Process toy(Train());
    ASSERT_EQ(toy.Wait(), 0) << toy.err;
    const auto names = PosixFileSystem().ListDirectory(model_.path()).value();
    for (const std::string& name : names) {
      if (absl::StrContains(name, "model.ckpt-20.ps-")) part_ = model_ / name;
    }
    ASSERT_NE(part_, "");
  }
  std::vector<std::string> Train(const std::vector<std::string>& more = {}) const {
    return Joined({kToyWorker, "--model_dir=" + model_.path(), "--steps=20"}, more);
  }
  static void Write(const std::string& path, const std::string& bytes) {
    ASSERT_TRUE(WriteFileAtomically(PosixFileSystem(), path, AsBytes(bytes.data(), bytes.size())).ok());
  }

  ScratchFolder model_;
  std::string part_;
};

TEST_F(BadCheckpoint, OfAnotherModel) {
  Process other(Train({"--width=7"}));
  ExpectFailure(other, 1, {"'w'", "[7]", "[1000]", model_ / "model.ckpt-20"});
}

TEST_F(BadCheckpoint, Truncated) {
  const auto bytes = PosixFileSystem().ReadFile(part_).value();
  Write(part_, bytes.substr(0, bytes.size() / 2));
  Process toy(Train());
  ExpectFailure(toy, 1, {part_});
}

TEST_F(BadCheckpoint, Corrupt) {
  auto bytes = PosixFileSystem().ReadFile(part_).value();
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  Write(part_, bytes);
  Process toy(Train());
  ExpectFailure(toy, 1, {part_});
}

TEST_F(BadCheckpoint, WithoutAPart) {
  ASSERT_TRUE(PosixFileSystem().Remove(part_).ok());
  Process toy(Train());
  ExpectFailure(toy, 1, {part_});
}

TEST_F(BadCheckpoint, WithAManifestThatIsNone) {
  Write(model_ / "model.ckpt-20.manifest.json", "{\"a\": ");
  Process toy(Train());
  ExpectFailure(toy, 1, {model_ / "model.ckpt-20.manifest.json"});
}

TEST(BadInput, AModelDirThatCannotBe) {
  ScratchFolder scratch;
  const std::string file = scratch / "file";
  ASSERT_TRUE(WriteFileAtomically(PosixFileSystem(), file, {}).ok());
  for (const std::string& model_dir : {file + "/model", std::string("/proc/model")}) {
    Process toy({kToyWorker, "--steps=20", "--model_dir=" + model_dir});
    ExpectFailure(toy, 1, {model_dir});
  }
}

TEST(BadInput, AReadOnlyModelDir) {
  SmallDisk disk("size=1m");
  if (!disk.mounted()) GTEST_SKIP() << disk.error();
  ASSERT_TRUE(disk.MakeReadOnly());
  Process toy({kToyWorker, "--steps=20", "--model_dir=" + disk.path()});
  ExpectFailure(toy, 1, {disk.path(), "Read-only file system"});
}

}  // namespace
}  // namespace muster::bad_input_test
