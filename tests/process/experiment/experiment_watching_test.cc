// `muster monitor`, `muster results` and `muster tensorboard`: what they show of running and ended experiments.
#include <gmock/gmock.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/testing/built_at.h"
#include "tests/process/testing/engines.h"

namespace muster::experiment_watching_test {
namespace {

using nlohmann::json;
using ::testing::AllOf, ::testing::Contains, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::Not,
    ::testing::StartsWith;

class ExperimentWatching : public OnEveryEngine {
 protected:
  // Trains three runs whose accuracy is their parameter.
  void TrainGrid() {
    WriteExperiment(
        "parameters: {rate: [0.5, 0.75, 0.25]}\nconcurrency: 1\nrun: printf '{\"test_accuracy\":%s,\"loss\":1}' $RATE "
        "> $OUTPUT_DIR/metrics.json");
    EXPECT_EQ(Muster({"train"}).exit_code, 0);
  }
  // Makes a program named tensorboard that prints its arguments and exits with 3. Returns its folder.
  std::string FakeTensorboard() const { return WriteProgram("tensorboard", "echo \"started $*\"\nexit 3"); }
};

// The command's own part: the terminal in which monitor draws, ids, the PATH in which it finds TensorBoard. No engine
// has a share in it.
class ExperimentWatchingHere : public ExperimentWatching {};

class ExperimentTensorboardMeanwhile : public ExperimentWatching {};

INSTANTIATE_TEST_SUITE_P(, ExperimentTensorboardMeanwhile, EnginesWith(NotOnEngine::kTensorboardWhileItRuns),
                         EngineName);
INSTANTIATE_TEST_SUITE_P(, ExperimentWatching, EveryEngine(), EngineName);
INSTANTIATE_TEST_SUITE_P(, ExperimentWatchingHere, ::testing::Values("local"), EngineName);

TEST_P(ExperimentWatching, ResultsOfAGridSortedByAMetric) {
  TrainGrid();
  const auto order = [](const std::string& table) {
    std::vector<std::string> ids;
    for (const std::string& line : std::vector<std::string>(absl::StrSplit(table, '\n', absl::SkipEmpty())))
      ids.push_back(line.substr(0, line.find(' ')));
    return ids;
  };
  EXPECT_THAT(order(Muster({"results", "1"}).out), ElementsAre("RUN", "1.2", "1.1", "1.3"));
  EXPECT_THAT(order(Muster({"results", "--metric", "test_accuracy", "--lowest"}).out),
              ElementsAre("RUN", "1.3", "1.1", "1.2"));
  const Said as_json = Muster({"results", "1", "--json"});
  EXPECT_EQ(as_json.exit_code, 0) << as_json.err;
  const json report = json::parse(as_json.out);
  EXPECT_EQ(report["metric"], "test_accuracy");
  EXPECT_EQ(report["runs"][0]["value"], 0.75);
  EXPECT_EQ(report["runs"][0]["parameters"]["rate"], "0.75");
  EXPECT_EQ(json::parse(Muster({"results", "1.3", "--json"}).out)["runs"].size(), 1U);
}

TEST_P(ExperimentWatching, ResultsAsAPage) {
  TrainGrid();
  const Said said = Muster({"results", "1", "--html", Aside("page.html")});
  EXPECT_EQ(said.exit_code, 0) << said.err;
  EXPECT_THAT(Read(Aside("page.html")), AllOf(StartsWith("<!DOCTYPE html>"), HasSubstr("test_accuracy against rate"),
                                              HasSubstr("Experiment 1 of toy")));
  EXPECT_EQ(Muster({"results", "1", "--html", "/nonexistent/page.html"}).exit_code, 2);
}

TEST_P(ExperimentWatching, ResultsThatThereAreNot) {
  TrainGrid();
  EXPECT_THAT(Mistake({"results", "7"}), HasSubstr("7"));
  EXPECT_THAT(Mistake({"results", "1.2.master"}), HasSubstr("here 1.2"));
  EXPECT_THAT(Mistake({"results", "1", "--metric", "acuracy"}), HasSubstr("accepted: loss, test_accuracy"));
  WriteExperiment("run: echo nothing");
  ASSERT_EQ(Muster({"train"}).exit_code, 0);
  const Said said = Muster({"results", "2"});
  EXPECT_EQ(said.exit_code, 0);
  EXPECT_EQ(said.out, "RUN  STATE\n2    FINISHED\n");
  EXPECT_THAT(said.err, HasSubstr("no metrics yet"));
}

TEST_P(ExperimentWatching, LogsFollowsARunUntilItsEnd) {
  const ScriptGate gate(Aside("gate"));
  WriteExperiment("run: echo begun; read line < " + gate.path() + "; seq 1000; echo over");
  const auto train = StartMuster({"train"});
  train->WaitForOut("begun");
  const auto logs = StartMuster({"logs", "1", "-f"});
  logs->WaitForOut("begun");
  gate.LetThrough();
  EXPECT_EQ(logs->Wait(), 0) << logs->err;
  EXPECT_EQ(train->Wait(), 0) << train->err;
  EXPECT_EQ(LinesOf(logs->out, "1.master"), LinesOf(train->out, "1.master"));
  EXPECT_THAT(LinesOf(logs->out, "1.master"), Contains("over"));
}

TEST_P(ExperimentWatching, MonitorShowsTasksUntilTheExperimentHasEnded) {
  const ScriptGate gate(Aside("gate"));
  WriteExperiment("run: echo begun; read line < " + gate.path());
  const auto train = StartMuster({"train"});
  train->WaitForOut("begun");
  // An agent has said what its task uses as soon as that has started.
  const std::string usage = home() + "/experiments/1/usage.json";
  EXPECT_FALSE(std::filesystem::exists(usage)) << "nobody watches";
  const Said once = Muster({"monitor", "--once"});
  EXPECT_EQ(once.exit_code, 0) << once.err;
  const std::vector<std::string> lines = absl::StrSplit(once.out, '\n');
  ASSERT_GE(lines.size(), 4U) << once.out;
  EXPECT_THAT(lines[1], AllOf(HasSubstr("CPU %"), HasSubstr("MEM-Used / Total"), Not(HasSubstr("GPU"))))
      << "80 columns, of which GPUs that nobody has get none";
  EXPECT_THAT(once.out, AllOf(HasSubstr("1.master  toy      RUNNING"), HasSubstr("\n1         toy      RUNNING"),
                              HasSubstr(" GB"), Not(HasSubstr("\x1b"))));
  const json task = json::parse(Muster({"monitor", "1.master", "--once", "--json"}).out)["tasks"][0];
  EXPECT_EQ(task["id"], "1.master");
  EXPECT_GT(task["mem_bytes"], 0);
  EXPECT_TRUE(task["cpu_percent"].is_number());
  EXPECT_EQ(std::filesystem::exists(usage), on_hosts());
  const auto monitor = StartMuster({"monitor", "1", "--interval", "0.1"});
  monitor->WaitForOut("RUNNING");
  gate.LetThrough();
  EXPECT_EQ(monitor->Wait(), 0) << monitor->err;
  EXPECT_THAT(monitor->out.substr(monitor->out.rfind("1.master")), HasSubstr("FINISHED"));
  EXPECT_EQ(train->Wait(), 0) << train->err;
  EXPECT_THAT(Muster({"monitor"}).out, HasSubstr("FINISHED")) << "of an ended one a table, and the end";
}

TEST_P(ExperimentWatchingHere, MonitorOnATerminalDrawsInPlaceAndCtrlCEndsIt) {
  const ScriptGate gate(Aside("gate"));
  WriteExperiment("run: echo begun; read line < " + gate.path());
  const auto train = StartMuster({"train"});
  train->WaitForOut("begun");
  const std::string muster = BinFolder() + "/muster";
  int terminal = -1;
  const winsize size = {.ws_row = 10, .ws_col = 30, .ws_xpixel = 0, .ws_ypixel = 0};
  const pid_t pid = forkpty(&terminal, nullptr, nullptr, &size);
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    setenv("MUSTER_HOME", home().c_str(), 1);
    setenv("TERM", "xterm", 1);
    // Ctrl-C must not throw away what the terminal hasn't shown yet.
    termios modes = {};
    if (tcgetattr(STDIN_FILENO, &modes) != 0) _exit(126);
    modes.c_lflag |= NOFLSH;
    if (tcsetattr(STDIN_FILENO, TCSANOW, &modes) != 0) _exit(126);
    execl(muster.c_str(), "muster", "monitor", "1", "--interval", "0.1", nullptr);
    _exit(127);
  }
  std::string shown;
  std::array<char, 4096> piece;
  bool asked = false;
  for (;;) {
    const ssize_t bytes = read(terminal, piece.data(), piece.size());
    if (bytes <= 0) break;  // reading a terminal at its end is an error
    shown.append(piece.data(), static_cast<size_t>(bytes));
    if (asked || shown.find("\x1b[3A") == std::string::npos) continue;
    asked = true;
    ASSERT_EQ(write(terminal, "\x03", 1), 1);  // Ctrl-C
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  close(terminal);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_THAT(shown, AllOf(StartsWith("\x1b[?25l"), HasSubstr("1.master"), HasSubstr("\x1b[?25h")));
  EXPECT_THAT(shown, Not(HasSubstr("MEM-Used"))) << "cut at 30 columns";
  gate.LetThrough();
  EXPECT_EQ(train->Wait(), 0) << "it went on";
}

TEST_P(ExperimentWatchingHere, MonitorOfWhatThereIsNot) {
  EXPECT_THAT(Mistake({"monitor", "7"}), HasSubstr("7"));
  EXPECT_THAT(Mistake({"monitor", "7", "--interval", "0"}), HasSubstr("--interval '0': accepted are seconds"));
  WriteExperiment("run: echo nothing");
  ASSERT_EQ(Muster({"train"}).exit_code, 0);
  EXPECT_THAT(Mistake({"monitor", "1.worker.4"}), HasSubstr("no such task"));
}

TEST_P(ExperimentWatching, TensorboardTakesThePlaceOfTheCommand) {
  TrainGrid();
  environment_.push_back(absl::StrCat("PATH=", FakeTensorboard(), ":/usr/bin:/bin"));
  const Said grid = Muster({"tensorboard", "1", "--port", "0"});
  EXPECT_EQ(grid.exit_code, 3) << grid.err;
  const std::string runs = home() + "/experiments/1/runs";
  EXPECT_THAT(grid.out, AllOf(StartsWith(absl::StrCat("TensorBoard on ", runs, ": http://127.0.0.1:")),
                              HasSubstr(absl::StrCat("\nstarted --logdir ", runs, " --host 127.0.0.1 --port "))));
  const Said run = Muster({"tensorboard", "1.2", "--json"});
  EXPECT_EQ(json::parse(run.out.substr(0, run.out.find('\n')))["folder"], runs + "/2/output");
}

TEST_P(ExperimentTensorboardMeanwhile, TheRealTensorboardBesideARun) {
  const std::string bin = SourceFolder() + "/.venv/bin";
  if (!std::filesystem::exists(bin + "/tensorboard"))
    GTEST_SKIP() << bin << " doesn't have tensorboard: './dev setup --tests' installs it";
  const ScriptGate gate(Aside("gate"));
  WriteExperiment("run: echo begun; read line < " + gate.path());
  const auto train = StartMuster({"train"});
  train->WaitForOut("begun");
  environment_.push_back(absl::StrCat("PATH=", bin, ":/usr/bin:/bin"));
  const auto board = StartMuster({"tensorboard", "--port", "0"});
  board->WaitForErr("Press CTRL+C to quit");
  board->WaitForOut("\n");
  const std::string output = home() + "/experiments/1/output";
  const std::vector<std::string> said = After(board->out, absl::StrCat("TensorBoard on ", output, ": "));
  ASSERT_EQ(said.size(), 1U) << board->out;
  EXPECT_THAT(board->err, HasSubstr(absl::StrCat(" at ", said[0], " ")));
  // Ignores the machine's proxy.
  constexpr char kAsk[] =
      "import sys, urllib.request as web\n"
      "print(web.build_opener(web.ProxyHandler({})).open(sys.argv[1] + 'data/environment').read().decode())";
  Process ask({bin + "/python", "-c", kAsk, said[0]});
  ASSERT_EQ(ask.Wait(), 0) << ask.err;
  EXPECT_EQ(json::parse(ask.out)["data_location"], output);
  board->Signal(SIGTERM);
  EXPECT_EQ(board->Wait(), 0) << board->err;
  EXPECT_EQ(json::parse(Muster({"status", "1", "--json"}).out)["state"], "RUNNING") << "it is another process";
  gate.LetThrough();
  EXPECT_EQ(train->Wait(), 0);
}

TEST_P(ExperimentWatching, TensorboardOfTheFileRunsUntilTheTasksHaveEnded) {
  const std::string folder = WriteProgram(
      "tensorboard", "trap 'echo bye; exit 0' TERM\necho \"started $*\"\nwhile :; do sleep 1000 & wait; done");
  environment_ = {absl::StrCat("PATH=", folder, ":/usr/bin:/bin")};
  const ScriptGate gate(Aside("gate"));
  Write("muster.yml",
        "project: toy\ntrain:\n  framework: tensorflow\n  tensorflow: {tensorboard: true}\n  run: read line < " +
            gate.path() + "\n");
  const auto train = StartMuster({"train"});
  train->WaitForOut("started ");
  gate.LetThrough();
  EXPECT_EQ(train->Wait(), 0) << train->err;
  const std::string output = supervisors_home() + "/experiments/1/output";
  EXPECT_THAT(train->out, AllOf(HasSubstr(absl::StrCat("TensorBoard on ", output, ": http://127.0.0.1:")),
                                HasSubstr(absl::StrCat("started --logdir ", output, " --host 127.0.0.1 --port ")),
                                HasSubstr("1.tensorboard | bye\n")));

  environment_ = {"PATH=/usr/bin:/bin"};
  std::filesystem::remove_all(folder);
  gate.LetThrough();
  const Said without = Muster({"train"});
  EXPECT_EQ(without.exit_code, 0) << "it isn't what was asked for";
  EXPECT_THAT(without.out, HasSubstr("TensorBoard isn't installed (pip install tensorboard, or ./dev setup"));
}

TEST_P(ExperimentWatchingHere, TensorboardOfTheShellThatStartedTheExperiment) {
  environment_ = {absl::StrCat("PATH=", FakeTensorboard(), ":/usr/bin:/bin")};
  TrainGrid();
  environment_ = {"PATH=/nonexistent"};
  EXPECT_EQ(Muster({"tensorboard", "1", "--port", "0"}).exit_code, 3);
}

TEST_P(ExperimentWatchingHere, WithoutTensorboardItSaysHowToInstallIt) {
  environment_ = {"PATH=/usr/bin:/bin"};
  TrainGrid();
  environment_ = {"PATH=/nonexistent"};
  EXPECT_THAT(Mistake({"tensorboard", "1"}), HasSubstr("; pip install tensorboard, or ./dev setup in a checkout"));
  EXPECT_THAT(Mistake({"tensorboard", "1.2.master"}), HasSubstr("here 1.2"));
  EXPECT_THAT(Mistake({"tensorboard", "9"}), HasSubstr("9"));
}

}  // namespace
}  // namespace muster::experiment_watching_test
