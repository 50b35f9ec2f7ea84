// `muster train --on ray` with a real Ray.
#include "tests/process/ray/ray_experiment.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/process/testing/by_hand.h"

namespace muster::ray_experiment_test {
namespace {

using ::testing::AllOf, ::testing::Contains, ::testing::ContainsRegex, ::testing::HasSubstr, ::testing::Not,
    ::testing::UnorderedElementsAre;

TEST_F(RayExperiment, TheTasksRunOnTheNodesWithTheCodeThatTheyDontSee) {
  job_ = "nodes: 3";
  for (const char* host : {"h2", "h3"}) HideFrom(host);
  Write("words.txt", "from the project\n");
  WriteCluster("{worker: 3}", "cat words.txt; echo on $(hostname)");
  const Said said = Muster({"train"});
  EXPECT_EQ(said.exit_code, 0) << said.out << said.err << Read("experiments/1/job.out");
  std::vector<std::string> seen;
  for (const char* task : {"1.master", "1.worker.1", "1.worker.2"}) {
    EXPECT_THAT(LinesOf(said.out, task), Contains("from the project"));
    for (const std::string& line : LinesOf(said.out, task))
      if (absl::StartsWith(line, "on ")) seen.push_back(line);
  }
  EXPECT_THAT(seen, UnorderedElementsAre("on h1", "on h2", "on h3"));
  EXPECT_EQ(StateOf("1"), "FINISHED");
  EXPECT_THAT(said.err, ContainsRegex("experiment 1 is job muster-1-[0-9a-f]+ of Ray"));
  const std::string script = Read("experiments/1/job.sh");
  EXPECT_THAT(script, AllOf(HasSubstr("#RAY {"), HasSubstr("\"nodes\":3"), Not(HasSubstr("TOKEN"))));
  ray().AwaitNothingElseOn("h1");
  EXPECT_THAT(LogOfJob(said.err), AllOf(HasSubstr("muster: experiment 1 has h"), HasSubstr("1.master --> FINISHED")));
}

TEST_F(RayExperiment, WhatNoNodeHasIsRefusedAtOnce) {
  // However busy this machine is, a job that does nothing takes as long to begin.
  const absl::Time start = absl::Now();
  ray().Ask({"job", "submit", "--", "true"});
  const absl::Duration nothing = absl::Now() - start;
  job_ = "nodes: 2";
  WriteExperiment("resources: {cpus: 64}\nrun: 'true'");
  const absl::Time asked = absl::Now();
  const Said said = Muster({"train"});
  EXPECT_LT(absl::Now() - asked, nothing + absl::Seconds(5));
  EXPECT_EQ(said.exit_code, 2) << said.out << said.err;
  EXPECT_EQ(StateOf("1"), "FAILED");
  EXPECT_THAT(Json({"status", "1"})["reason"].get<std::string>(),
              AllOf(HasSubstr("Ray can never give 2 nodes with {CPU: 64} each: of its 3 nodes, 0 have as much"),
                    HasSubstr("the most that one has is {CPU: 4}")));
}

TEST_F(RayExperiment, WhatIsNotFreeNowIsWaitedForAndStatusSaysWhy) {
  job_ = "nodes: 2, resources: {CPU: 4}";
  WriteExperiment(absl::StrCat("run: '", UntilStop(), "'"));
  const auto first = StartMuster({"train"});
  first->WaitForOut("begins on ");
  const auto second = StartMuster({"train"});
  second->WaitForErr("experiment 2 waits: job ", 0);
  AwaitStatus("2",
              "RUNNING (waits for 2 nodes with {CPU: 4} each; free now: h1 0 of 4 CPU; h2 0 of 4 CPU; h3 2 of 2 CPU)");
  const auto third = StartMuster({"train"});
  AwaitStatus("3", "RUNNING (waits for 2 nodes");
  EXPECT_EQ(Muster({"kill", "3"}).exit_code, 0);
  EXPECT_EQ(third->Wait(), 130) << third->err;
  EXPECT_EQ(StateOf("3"), "KILLED");
  LetEnd("1");
  EXPECT_EQ(first->Wait(), 0) << first->err;
  second->WaitForOut("begins on ");
  EXPECT_THAT(Muster({"status", "2"}).out, Not(HasSubstr("waits")));
  LetEnd("2");
  EXPECT_EQ(second->Wait(), 0) << second->err;
}

// Each of them has somebody who starts it again; the tasks go on but where their agent's actor dies.
TEST_F(RayExperiment, WhatIsKilledIsReplaced) {
  job_ = "nodes: 2";
  grace_ = "2m";  // a busy machine takes its time until there is another supervisor
  WriteCluster("{worker: 2}", UntilStop());
  const auto train = StartMuster({"train"});
  for (const char* task : {"1.master", "1.worker.1"}) AwaitLines(*train, task, 2);
  AwaitStatus("1", "RUNNING");
  AwaitHandover();
  const std::string host = Json({"status", "1"})["tasks"][1]["host"];
  EXPECT_EQ(KillOn(host, "agent --serve"), 1);
  EXPECT_EQ(KillOn("h1", " supervise 1"), 1);
  AwaitTakeOvers(1);
  EXPECT_EQ(Read("experiments/1/output/starts"), "start\nstart\n");
  EXPECT_EQ(KillOn(host, "ray::HostAgent"), 1);
  AwaitLines(*train, "1.worker.1", 4);
  EXPECT_EQ(Read("experiments/1/output/starts"), "start\nstart\nstart\n")
      << train->out << Read("experiments/1/logs/experiment/000001.log") << Read("experiments/1/job.out");
  // The agent's own guard, with which it ends.
  EXPECT_GE(KillOn(host, "run-guard agent"), 1);
  KillOn(host, "agent --serve");
  AwaitLines(*train, "1.worker.1", 6);
  LetEnd("1");
  EXPECT_EQ(train->Wait(), 0) << train->out << train->err << Read("experiments/1/job.out");
  EXPECT_THAT(Read("experiments/1/job.out"), HasSubstr("the supervisor of experiment 1 was killed (signal 9)"));
}

TEST_F(RayExperiment, ADriverThatIsKilledLeavesNothing) {
  job_ = "nodes: 2";
  WriteCluster("{worker: 2}", UntilStop());
  const auto train = StartMuster({"train"});
  for (const char* task : {"1.master", "1.worker.1"}) AwaitLines(*train, task, 2);
  EXPECT_EQ(KillOn("h1", "ray_driver.py"), 1);
  EXPECT_EQ(train->Wait(), 137) << train->err;
  EXPECT_THAT(Json({"status", "1"})["reason"].get<std::string>(),
              ContainsRegex("its job muster-1-[0-9a-f]+ of Ray has ended: FAILED"));
}

// Answers every request as a dashboard does to whom it doesn't know.
constexpr char kRefusing[] = R"(
import http.server, sys

class Refusing(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(401)
        self.end_headers()
        self.wfile.write(b"Unauthorized: Missing authentication token")

server = http.server.HTTPServer(("127.0.0.1", 0), Refusing)
print("port", server.server_port, flush=True)
server.serve_forever()
)";

TEST_F(RayExperiment, WhatKeepsItFromRayIsSaidAndNothingIsLeft) {
  const auto refused_at = [this](const std::string& address, const std::vector<std::string>& flags = {}) {
    address_ = address;
    WriteExperiment("run: 'true'");
    const Said said = Muster(Joined({"train"}, flags));
    EXPECT_EQ(said.exit_code, 2) << said.out << said.err;
    return said.err;
  };
  EXPECT_THAT(refused_at("http://10.77.0.11:8266"),
              HasSubstr("no dashboard of Ray answers at http://10.77.0.11:8266 ([Errno 111] Connection refused)"));
  Process refusing(hosts().On("h0", {RayCluster::python(), "-c", kRefusing}));
  refusing.WaitForOut("\n");
  const std::string port = After(refusing.out, "port ").at(0);
  EXPECT_THAT(refused_at("http://127.0.0.1:" + port),
              HasSubstr("Ray refuses it: status code 401: Unauthorized: Missing authentication token"));
  refusing.Signal(SIGKILL);
  EXPECT_THAT(refused_at("auto", {"--ray", "python=/usr/bin/python3"}),
              HasSubstr("/usr/bin/python3 has no Ray: pip install 'ray[default]' there"));
  EXPECT_THAT(Muster({"ls", "--all"}).out, Not(HasSubstr("FAILED"))) << "nothing was submitted";
  // Where the job's driver runs, too.
  const std::string at_head = refused_at(RayCluster::address(), {"--ray", "python=/usr/bin/python3"});
  EXPECT_THAT(at_head, HasSubstr("h1 has no /usr/bin/python3 with Ray, where the job's driver runs"));
  WriteExperiment("run: 'true'");
  EXPECT_THAT(Out({"train", "--dry-run"}), ContainsRegex("Ray says: version 2\\.[0-9.]+ answers at http://10.77.0.11"));
  EXPECT_THAT(Muster({"ls"}).out, Not(HasSubstr("PENDING")));
}

}  // namespace
}  // namespace muster::ray_experiment_test
