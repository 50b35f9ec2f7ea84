// Traces, status pages and metrics as a user sees them: of real programs, including killed ones, read by the tools made
// for them.
#include <gmock/gmock.h>
#include <httplib.h>
#include <signal.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/base/net/free_ports.h"
#include "muster/base/testing/built_at.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/observe/trace_part.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/process.h"

namespace muster::trace_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::Not;
using Json = nlohmann::json;

const std::string kMuster = BinFolder() + "/muster";
const std::string kToy = BinFolder() + "/toy_worker";

std::string Read(const std::string& path) { return PosixFileSystem().ReadFile(path).value_or(""); }

// A merged trace, by task.
class Trace {
 public:
  explicit Trace(const std::string& path) : json_(Json::parse(Read(path), nullptr, /*allow_exceptions=*/false)) {
    if (!json_.is_object()) return;
    std::map<int64_t, std::string> tasks;
    for (const Json& event : json_.at("traceEvents"))
      if (event.at("name") == "process_name") tasks[event.at("pid")] = event.at("args").at("name");
    for (const Json& event : json_.at("traceEvents")) events_[tasks[event.at("pid")]].push_back(event);
  }
  bool readable() const { return json_.is_object(); }
  Json tasks() const { return json_.at("otherData").at("tasks"); }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [name, events] : events_) names.push_back(name);
    return names;
  }
  // Returns the complete events of that name.
  std::vector<Json> Events(const std::string& task, const std::string& name) const {
    std::vector<Json> found;
    if (const auto events = events_.find(task); events != events_.end())
      for (const Json& event : events->second)
        if (event.at("name") == name && event.at("ph") == "X") found.push_back(event);
    return found;
  }
  // Returns when the updates of all tasks passed that phase ("s": pushed, "t": applied, "f": pulled), by their names.
  std::map<std::string, double> Flows(const std::string& phase) const {
    std::map<std::string, double> times;
    for (const auto& [task, events] : events_)
      for (const Json& event : events)
        if (event.at("ph") == phase) times[event.at("id")] = event.at("ts");
    return times;
  }

 private:
  const Json json_;
  std::map<std::string, std::vector<Json>> events_;
};

double End(const Json& event) { return event.at("ts").get<double>() + event.at("dur").get<double>(); }

// Expects that every event of that name lies in a step of its task, except some before the first step and in the step
// in which a task was killed.
void ExpectInSteps(const Trace& trace, const std::string& task, const std::string& name) {
  const std::vector<Json> steps = trace.Events(task, "step");
  EXPECT_GT(steps.size(), 100) << task;
  std::map<double, double> ends;
  for (const Json& step : steps) ends[step.at("ts")] = End(step);
  size_t inside = 0;
  const std::vector<Json> events = trace.Events(task, name);
  for (const Json& event : events) {
    const auto step = ends.upper_bound(event.at("ts").get<double>() + 1e-3);
    if (step != ends.begin() && End(event) <= std::prev(step)->second + 2e-3) ++inside;
  }
  // ps 0 gets two requests per update, the second of which only counts.
  EXPECT_GE(inside, steps.size() / 2) << task << " " << name << ": of " << events.size();
  EXPECT_LE(events.size() - inside, events.size() / 100) << task << " " << name << ": of " << events.size();
}

size_t Count(const std::string& text, const std::string& what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size())) ++count;
  return count;
}

TEST(TraceTest, ARunGivesOneTraceOfAllTasksThoughOneWasKilled) {
  const ScratchFolder scratch;
  const std::string file = scratch / "run.json";
  // Every step is logged, and no process gets further ahead of the test that reads it than its pipe holds: so the run
  // is in the middle when a process is killed, however fast it is, and no part gets more than can be written.
  Process run({kMuster, "run", "--ps", "2", "--workers", "2", "--muster-ps", "--trace", file, "--", kToy,
               "--steps=1000000000", "--log_steps=1", "--pipe_bytes=4096", "--width=40000"});
  run.WaitForErr("\n", run.WaitForErr("worker:1 is process ", 0));
  const pid_t worker = std::atoi(After(run.err, "[muster] worker:1 is process ").at(0).c_str());
  // Waits until they train, and their parts have so many steps that one doesn't matter.
  const std::string parts = absl::StrCat(file, ".parts-", After(run.err, "[muster] run ").at(0));
  const auto train = [&](const std::string& part, size_t steps) {
    while (Count(Read(parts + part), "\"name\":\"step\"") < steps && !HasFailure())
      run.WaitForErr("\n", run.err.size());
  };
  train("/part.worker-0", 1000);
  train("/part.worker-1", 1000);
  const size_t killed = run.err.size();
  kill(worker, SIGKILL);
  run.WaitForErr("[muster] worker:1 is process ", run.WaitForErr("worker:1 was killed by signal 9", killed));
  train("/part.worker-1", 1);  // now the next life's
  run.Signal(SIGINT);
  ASSERT_EQ(run.Wait(), 0) << run.err;

  const Trace trace(file);
  ASSERT_TRUE(trace.readable());
  EXPECT_THAT(trace.names(), ElementsAre("ps:0", "ps:1", "worker:0", "worker:1", "worker:1 (life 2)"));
  for (const Json& task : trace.tasks()) {
    EXPECT_EQ(task.at("offset_us"), 0) << task;
    EXPECT_EQ(task.at("ended"), task.at("task") != "worker:1") << task;
    EXPECT_EQ(task.at("left_out"), 0) << task;
  }
  for (const std::string task : {"worker:0", "worker:1"})
    for (const std::string name : {"compute", "push", "wait", "pull", "hooks"}) ExpectInSteps(trace, task, name);
  for (const std::string task : {"ps:0", "ps:1"})
    for (const std::string name : {"apply", "answer"}) ExpectInSteps(trace, task, name);
  // The last updates before the kill may be incomplete.
  const auto pushed = trace.Flows("s"), pulled = trace.Flows("f");
  size_t whole = 0;
  for (const auto& [update, applied] : trace.Flows("t")) {
    if (!pushed.contains(update) || !pulled.contains(update)) continue;
    ++whole;
    EXPECT_LE(pushed.at(update), applied) << update;
    EXPECT_LE(applied, pulled.at(update)) << update;
  }
  EXPECT_GT(whole, 1000);
  EXPECT_THAT(run.err, HasSubstr("worker:0, training: "));
  EXPECT_FALSE(PosixFileSystem().Exists(parts));

  Process summary({kMuster, "trace", "summary", file});
  EXPECT_EQ(summary.Wait(), 0) << summary.err;
  EXPECT_THAT(summary.out, HasSubstr("ps:0, service: "));
  EXPECT_THAT(summary.out, HasSubstr("compute"));
}

TEST(TraceTest, ByHandEachTaskWritesAPartAndTheirClocksAreMeasured) {
  const ScratchFolder scratch;
  const std::string file = scratch / "run.json";
  ByHand cluster(1, 1);
  ServingPs ps(cluster, 0, {"--trace", file});
  Process worker(Joined({kToy, "--trace", file, "--steps=2000"}, cluster.Flags("worker", 0)));
  EXPECT_EQ(worker.Wait(), 0) << worker.err;
  EXPECT_EQ(ps.Wait(), 0) << ps.err;
  const std::string text = Read(file + ".worker-0");
  const auto part = ParsePart(text);
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_TRUE(Json::accept(text));
  ASSERT_FALSE(part->clock.empty());
  for (const ClockSample& sample : part->clock) EXPECT_LE(std::abs(sample.offset), sample.uncertainty);

  Process merge({kMuster, "trace", "merge", file, file + ".worker-0", file + ".ps-0"});
  EXPECT_EQ(merge.Wait(), 0) << merge.err;
  EXPECT_THAT(merge.out, HasSubstr("worker:0: "));
  EXPECT_THAT(Trace(file).names(), ElementsAre("ps:0", "worker:0"));

  // As `muster run` leaves them when it is killed.
  const std::string folder = scratch / "run.json.parts-1";
  std::filesystem::create_directory(folder);
  for (const std::string part : {"worker-0", "ps-0"})
    std::filesystem::rename(absl::StrCat(file, ".", part), absl::StrCat(folder, "/", part));
  Process again({kMuster, "trace", "merge", file, folder});
  EXPECT_EQ(again.Wait(), 0) << again.err;
  EXPECT_EQ(again.out, merge.out);

  // The second time, the output of the first lies in the folder itself.
  const std::vector<std::string> inside = {kMuster, "trace", "merge", folder + "/whole.json", folder + "/"};
  EXPECT_EQ(Process(inside).Wait(), 0);
  Process second(inside);
  EXPECT_EQ(second.Wait(), 2);
  EXPECT_THAT(second.err, HasSubstr("is both the output and one of the parts"));
}

TEST(TraceTest, AProcessAloneWritesTheFileItself) {
  const ScratchFolder scratch;
  Process alone({kToy, "--trace", scratch / "run.json", "--steps=20", "--apply=auto"});
  EXPECT_EQ(alone.Wait(), 0) << alone.err;
  EXPECT_TRUE(Json::accept(Read(scratch / "run.json")));
  EXPECT_THAT(Read(scratch / "run.json"), HasSubstr("\"name\":\"apply\""));
}

// Requests `path` from the host of `url` and returns the body.
std::string Get(const std::string& url, const std::string& path) {
  httplib::Client client(url.substr(0, url.size() - 1));
  const auto answer = client.Get(path);
  EXPECT_TRUE(answer && answer->status == 200) << url << path;
  return answer ? answer->body : "";
}

// Returns what Prometheus' own parser finds: the names of the families, one per line. Skips the test without it.
std::string Parsed(const std::string& metrics, const ScratchFolder& scratch) {
  const std::string python = SourceFolder() + "/.venv/bin/python";
  std::ofstream(scratch / "metrics") << metrics;
  Process parse({python, "-c",
                 "import sys\n"
                 "from prometheus_client.parser import text_fd_to_metric_families as parse\n"
                 "for f in parse(open(sys.argv[1])):\n"
                 "  assert f.documentation and f.type != 'unknown', f\n"
                 "  print(f.type, f.name, len(f.samples))\n",
                 scratch / "metrics"});
  EXPECT_EQ(parse.Wait(), 0) << parse.err << metrics;
  return parse.out;
}

bool HasParser() {
  const std::string python = SourceFolder() + "/.venv/bin/python";
  if (!PosixFileSystem().Exists(python)) return false;
  Process look({python, "-c", "import prometheus_client.parser"});
  return look.Wait() == 0;
}

TEST(StatusPageTest, EveryTaskShowsItsStatusAndMetricsWhileItTrains) {
  const ScratchFolder scratch;
  ByHand cluster(1, 2);
  ServingPs ps(cluster, 0, {"--status_port=0"});
  // Rounds that need both workers: worker 0 waits for worker 1, which comes later.
  const std::vector<std::string> toy = {kToy, "--status_port=0", "--aggregate=2", "--steps=1000000000",
                                        "--log_steps=100"};
  Process worker(Joined(toy, cluster.Flags("worker", 0)));
  worker.WaitForErr("\n", worker.WaitForErr("shows its status at ", 0));
  Process other(Joined(toy, cluster.Flags("worker", 1)));
  worker.WaitForErr("loss = ");
  const std::string ps_url = After(ps.err.substr(ps.err.find("ps:0 shows")), "ps:0 shows its status at ").at(0);
  const std::string worker_url =
      After(worker.err.substr(worker.err.find("worker:0 shows")), "worker:0 shows its status at ").at(0);

  Json status;  // asked for until there have been enough steps; traffic is counted ten times a second
  do status = Json::parse(Get(worker_url, "/status"));
  while (status.at("steps") <= 100 || status.at("bytes_sent") == 0);
  EXPECT_EQ(status.at("task"), "worker:0");
  EXPECT_EQ(status.at("state"), "training");
  const std::string page = Get(worker_url, "/");
  for (const std::string text : {"global step", "applied by the ps", "where the time of a step goes", "compute"})
    EXPECT_THAT(page, HasSubstr(text));
  EXPECT_EQ(Json::parse(Get(ps_url, "/status")).at("task"), "ps:0");
  EXPECT_THAT(Get(ps_url, "/"), HasSubstr("round "));

  const std::string worker_metrics = Get(worker_url, "/metrics"), ps_metrics = Get(ps_url, "/metrics");
  if (HasParser()) {
    EXPECT_THAT(Parsed(worker_metrics, scratch), HasSubstr("counter muster_steps 1"));
    EXPECT_THAT(Parsed(worker_metrics, scratch), HasSubstr("histogram muster_staleness"));
    const std::string parsed = Parsed(ps_metrics, scratch);
    for (const std::string family :
         {"gauge muster_clients 4", "counter muster_updates 1", "histogram muster_step_seconds"})
      EXPECT_THAT(parsed, HasSubstr(family));
  }
  EXPECT_THAT(ps_metrics, HasSubstr("muster_clients{task=\"ps:0\",state=\"alive\"} 2\n"));
  const std::vector<Process*> all = {&other, &worker, &ps};
  for (Process* process : all) process->Signal(SIGKILL);
  for (Process* process : all) process->Reap();
  if (!HasParser()) GTEST_SKIP() << "prometheus_client is not in .venv; ./dev test installs it";
}

TEST(StatusPageTest, AnEvaluatorShowsThatItEvaluates) {
  Process evaluator({kToy, "--status_port=0"},
                    {.environment = {{"TF_CONFIG", R"({"cluster": {"ps": ["127.0.0.1:1"], "worker": ["127.0.0.1:2"]},)"
                                                   R"( "task": {"type": "evaluator", "index": 0}})"}}});
  evaluator.WaitForErr("\n", evaluator.WaitForErr("evaluator:0 shows its status at ", 0));
  const std::string url =
      After(evaluator.err.substr(evaluator.err.find("evaluator:0 shows")), "evaluator:0 shows its status at ").at(0);
  const Json status = Json::parse(Get(url, "/status"));
  EXPECT_EQ(status.at("task"), "evaluator:0");
  EXPECT_EQ(status.at("state"), "evaluating");
  EXPECT_EQ(status.at("steps"), 0);
  EXPECT_THAT(Get(url, "/"), HasSubstr("evaluator:0  evaluating"));
  EXPECT_THAT(Get(url, "/metrics"), HasSubstr("{task=\"evaluator:0\"}"));
  evaluator.Signal(SIGKILL);
  evaluator.Reap();
}

TEST(StatusPageTest, ARunNamesThePagesOfItsTasks) {
  Process run(
      {kMuster, "run", "--muster-ps", "--status_port", "0", "--", kToy, "--steps=1000000000", "--log_steps=100"});
  run.WaitForErr("loss = ");
  const std::vector<std::string> started = After(run.err, "[muster] worker:0 (the chief) is process ");
  ASSERT_FALSE(started.empty());
  const std::string url = started[0].substr(started[0].find("http://"));
  EXPECT_EQ(Json::parse(Get(url, "/status")).at("task"), "worker:0");
  run.Signal(SIGINT);
  EXPECT_EQ(run.Wait(), 0) << run.err;
}

TEST(StatusPageTest, ARunWhosePagesHaveNoPortsStartsNothing) {
  httplib::Server other;
  const int port = other.bind_to_any_port("127.0.0.1");
  ASSERT_GT(port, 0);
  const ScratchFolder scratch;
  Process run({kMuster, "run", "--status_port", std::to_string(port), "--trace", scratch / "run.json", "--", kToy});
  EXPECT_EQ(run.Wait(), 2);
  EXPECT_THAT(run.err, HasSubstr("port " + std::to_string(port) + " is in use"));
  EXPECT_THAT(run.err, Not(HasSubstr("is process")));
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path())) << "no trace of a run that never began";

  Process dry({kMuster, "run", "--status_port", std::to_string(port), "--dry-run", "--", kToy});
  EXPECT_EQ(dry.Wait(), 0) << dry.err;
  EXPECT_THAT(dry.out, HasSubstr(std::to_string(port))) << "it starts nothing either way";
}

// Like the port of a task that has been killed and is being started again.
TEST(StatusPageTest, APortOnWhichNobodyListensBelongsToTheRunAsLongAsItLives) {
  uint16_t port = 0;
  {
    Process run({kMuster, "run", "--ps", "0", "--status_port", "0", "--", "/bin/sleep", "1000"});
    run.WaitForErr("\n", run.WaitForErr("http://127.0.0.1:", 0));
    port = static_cast<uint16_t>(std::atoi(run.err.substr(run.err.find("http://127.0.0.1:") + 17).c_str()));
    EXPECT_TRUE(absl::IsInvalidArgument(FreePorts::Take({.first = port, .count = 1}).status())) << port;
    run.Signal(SIGINT);
    EXPECT_EQ(run.Wait(), 128 + SIGTERM) << "how the chief ended";
  }
  EXPECT_EQ(FreePorts::Take({.first = port, .count = 1}).status(), absl::OkStatus()) << port;
}

TEST(StatusPageTest, WhatCantBeIsToldBeforeAnythingIsStarted) {
  const std::vector<std::vector<std::string>> commands = {
      {kToy, "--status_port=x"},
      {kToy, "--status_port=70000"},
      {kToy, "--status_port"},
      {kToy, "--trace"},
      {kMuster, "ps", "--ps_hosts=127.0.0.1:1", "--worker_hosts=127.0.0.1:2", "--job_name=ps", "--task_index=0",
       "--status_port=host"},
      {kMuster, "run", "--status_port=x", "--", kToy},
      {kMuster, "run", "--status_port=65535", "--", kToy},
      {kMuster, "run", "--trace=/no/such/folder/trace.json", "--", kToy},
      {kMuster, "trace", "summary", "/no/such/file"},
      {kMuster, "trace", "merge", "/tmp/x", kMuster},
      {kMuster, "trace"},
  };
  for (const std::vector<std::string>& words : commands) {
    Process process(words);
    EXPECT_EQ(process.Wait(), 2) << words.back() << ": " << process.err;
    EXPECT_NE(process.err, "");
  }
}

}  // namespace
}  // namespace muster::trace_test
