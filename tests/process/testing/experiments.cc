#include "tests/process/testing/experiments.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "muster/base/testing/built_at.h"
#include "muster/launch/registry/home.h"
#include "muster/launch/system/pid_fd.h"

namespace muster {
namespace {

constexpr int kMostSecondsToEnd = 60;
// For processes that are already ending when they are looked at.
constexpr int kMostMillisecondsToVanish = 10000;

}  // namespace

ExperimentsTest::ExperimentsTest(const std::string& base)
    : base_(base.empty() ? scratch_.path() : base), home_(base_ + "/home"), project_(base_ + "/project") {
  std::filesystem::create_directories(project_);
}

ExperimentsTest::~ExperimentsTest() {
  // If the test has broken the home on purpose there is no experiment.
  const Said open = Muster({"ls", "--all", "--last", "0", "--json"});
  if (open.exit_code == 0) {
    for (const auto& experiment : nlohmann::json::parse(open.out)) {
      if (!experiment["ended"].is_null()) continue;
      ADD_FAILURE() << "goes on: " << experiment.dump();
      Muster({"kill", experiment["id"].get<std::string>(), "--now"});
    }
  }
  ExpectNothingLeft();
}

ProcessOptions ExperimentsTest::Options() const {
  ProcessOptions options;
  options.directory = project_;
  options.environment = {{"MUSTER_HOME", home_}};
  for (const std::string& variable : environment_) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(variable, absl::MaxSplits('=', 1));
    options.environment.push_back(parts);
  }
  return options;
}

void ExperimentsTest::ExpectNothingLeft() const {
  for (const pid_t pid : ProcessesWith("MUSTER_HOME=" + home_)) {
    const int fd = OpenPidFd(pid);
    if (fd < 0) continue;  // gone
    pollfd end = {fd, POLLIN, 0};
    if (poll(&end, 1, kMostMillisecondsToVanish) != 1) {
      ADD_FAILURE() << "process " << pid << " is left";
      SignalPidFd(fd, SIGKILL);
    }
    close(fd);
  }
}

Said ExperimentsTest::Muster(const std::vector<std::string>& arguments) {
  Process process(Command(arguments), Options());
  const int exit_code = process.Wait();
  return {exit_code, process.out, process.err};
}

std::vector<std::string> ExperimentsTest::Command(const std::vector<std::string>& arguments) const {
  return Joined({BinFolder() + "/muster"}, arguments);
}

std::string ExperimentsTest::Out(const std::vector<std::string>& arguments) {
  const Said said = Muster(arguments);
  EXPECT_EQ(said.exit_code, 0) << said.out << said.err;
  for (const absl::string_view line : absl::StrSplit(said.err, '\n', absl::SkipEmpty())) {
    if (absl::StartsWith(line, "experiment ")) break;
    const bool is_usual =
        absl::StartsWith(line, "muster: its supervisor is ") || absl::StrContains(line, " is asked for get no task; ");
    EXPECT_TRUE(is_usual) << said.err;
  }
  return said.out;
}

nlohmann::json ExperimentsTest::Json(std::vector<std::string> arguments) {
  arguments.emplace_back("--json");
  const std::string out = Out(arguments);
  nlohmann::json json = nlohmann::json::parse(out, nullptr, /*allow_exceptions=*/false);
  EXPECT_FALSE(json.is_discarded()) << out;
  return json;
}

std::string ExperimentsTest::Mistake(const std::vector<std::string>& arguments) {
  const Said said = Muster(arguments);
  EXPECT_EQ(said.exit_code, 2) << arguments[0] << "\n" << said.out << said.err;
  EXPECT_EQ(said.out, "");
  EXPECT_TRUE(absl::StartsWith(said.err, "muster " + arguments[0] + ": ")) << said.err;
  return said.err;
}

std::string ExperimentsTest::StateOf(const std::string& id) { return Json({"status", id})["state"].get<std::string>(); }

nlohmann::json ExperimentsTest::TasksOf(const std::string& id) {
  const nlohmann::json status = Json({"status", id});
  nlohmann::json by_id = nlohmann::json::object();
  for (const nlohmann::json& task : status.at("tasks")) by_id[task["id"].get<std::string>()] = task;
  return by_id;
}

void ExperimentsTest::KillSupervisor(const std::string& id) {
  const nlohmann::json supervisor = Json({"status", id})["supervisor"];
  ASSERT_TRUE(supervisor.is_number()) << id;
  ASSERT_EQ(kill(supervisor.get<pid_t>(), SIGKILL), 0);
}

std::unique_ptr<Process> ExperimentsTest::StartMuster(const std::vector<std::string>& arguments) {
  return std::make_unique<Process>(Command(arguments), Options());
}

void ExperimentsTest::Write(const std::string& path, const std::string& text) {
  const std::filesystem::path whole = std::filesystem::path(project_) / path;
  std::filesystem::create_directories(whole.parent_path());
  std::ofstream file(whole, std::ios::binary);
  file << text << (path == "muster.yml" || path == "riseml.yml" ? MoreOfFile() : "");
  ASSERT_TRUE(file.flush().good()) << whole;
}

void ExperimentsTest::WriteExperiment(const std::string& train) {
  std::string text = "project: toy\ntrain:\n  framework: any\n";
  for (const absl::string_view line : absl::StrSplit(absl::StripSuffix(train, "\n"), '\n'))
    absl::StrAppend(&text, "  ", line, "\n");
  Write("muster.yml", text);
}

Said ExperimentsTest::TrainALargerModelThanItsPsMayHave() {
  Write("muster.yml",
        absl::StrCat("project: toy\ntrain:\n  framework: muster\n  muster: {distributed: {ps: {count: 1, resources: "
                     "{mem: 100MB}}, worker: 1}}\n  run: ",
                     BinFolder(), "/toy_worker --width=40000000 --steps=10 --model_dir=$OUTPUT_DIR\n"));
  Said said = Muster({"train"});
  EXPECT_NE(said.exit_code, 0);
  EXPECT_FALSE(absl::StrContains(said.out, "step = ")) << said.out;
  return said;
}

std::string ExperimentsTest::WriteProgram(const std::string& name, const std::string& script) const {
  const std::filesystem::path folder = Aside("bin");
  std::filesystem::create_directories(folder);
  std::ofstream(folder / name) << "#!/bin/sh\n" << script << "\n";
  std::filesystem::permissions(folder / name, std::filesystem::perms::owner_all);
  return folder;
}

std::string ExperimentsTest::Read(const std::string& path) const {
  std::ifstream file(std::filesystem::path(home_) / path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

void ExperimentsTest::AwaitEnd(const std::string& id) {
  const auto parsed = ExperimentId::Parse(id).value();
  Process waiting({"/usr/bin/flock", "--shared", "--timeout", absl::StrCat(kMostSecondsToEnd), Home(home_).lock(parsed),
                   "/bin/true"});
  ASSERT_EQ(waiting.Wait(), 0) << "experiment " << id << " hasn't ended";
  // Nobody holds the lock of one that waits for its job.
  const absl::Time give_up = absl::Now() + absl::Seconds(kMostSecondsToEnd);
  while (Json({"status", id})["ended"].is_null() && absl::Now() < give_up) {
  }
}

ScriptGate::ScriptGate(const std::string& path)
    // Opened for reading as well, so that neither this nor writing waits for a reader.
    : path_(path), fd_(mkfifo(path.c_str(), 0666) == 0 ? open(path.c_str(), O_RDWR | O_CLOEXEC) : -1) {
  EXPECT_GE(fd_, 0) << path;
}

ScriptGate::~ScriptGate() { close(fd_); }

void ScriptGate::LetThrough(int count) const {
  // Lines without another byte, so that readers that come together each get a whole one.
  const std::string lines(static_cast<size_t>(count), '\n');
  ASSERT_EQ(write(fd_, lines.data(), lines.size()), static_cast<ssize_t>(lines.size()));
}

std::vector<std::string> LinesOf(const std::string& shown, const std::string& name) {
  const std::regex state(R"(\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\] (--> [A-Z]+))");
  std::vector<std::string> lines;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(shown, '\n'))) {
    const size_t bar = line.find(" | ");
    if (bar == std::string::npos || absl::StripTrailingAsciiWhitespace(line.substr(0, bar)) != name) continue;
    const std::string text = line.substr(bar + 3);
    std::smatch parts;
    if (absl::StartsWith(text, "[") && std::regex_match(text, parts, state)) {
      lines.push_back(parts[1]);
    } else {
      EXPECT_FALSE(absl::StartsWith(text, "--> ")) << line;
      lines.push_back(text);
    }
  }
  return lines;
}

void AwaitLines(Process& train, const std::string& name, size_t count) {
  const auto whole = [&train] { return train.out.substr(0, train.out.rfind('\n') + 1); };
  while (LinesOf(whole(), name).size() < count && !testing::Test::HasFailure()) train.ReadSomeOut();
}

std::vector<std::string> StatesOf(const std::string& shown, const std::string& name) {
  std::vector<std::string> states;
  for (const std::string& line : LinesOf(shown, name))
    if (absl::StartsWith(line, "--> ")) states.push_back(line.substr(4));
  return states;
}

}  // namespace muster
