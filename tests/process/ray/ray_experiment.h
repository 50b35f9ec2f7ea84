// A fixture for tests of `muster train --on ray` with a real Ray on three simulated hosts, which all tests share. h1
// has Ray's head, h3 two GPUs that are none.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/process/testing/job_experiments.h"
#include "tests/process/testing/ray_cluster.h"

namespace muster {

class RayExperiment : public JobExperiments {
 protected:
  RayExperiment() : JobExperiments(NewFolder()) {}
  static void TearDownTestSuite() { OfSuite().reset(); }
  void SetUp() override {
    if (const std::string why = RayCluster::WhyNot(); !why.empty()) GTEST_SKIP() << why;
  }
  void TearDown() override {
    if (OfSuite() == nullptr) return;
    for (const std::string& host : hosts().names()) ray().AwaitNothingElseOn(host);
  }

  static SimulatedHosts& hosts() { return OfSuite()->hosts; }
  static RayCluster& ray() { return OfSuite()->ray; }

  std::vector<std::string> Command(const std::vector<std::string>& arguments) const override {
    return hosts().On("h0", ExperimentsTest::Command(arguments));
  }
  std::string MoreOfFile() const override {
    return absl::StrCat("on: ray\ngrace: ", grace_, "\nray: {address: \"", address_, "\", python: ", python_, ", ",
                        job_, "}\n");
  }
  // Kills what runs on a host and has `text` among its words. Returns how many that are.
  static int KillOn(const std::string& host, const std::string& text) { return KillProcessesOn(hosts(), host, text); }
  // From now on the host sees neither the project nor MUSTER_HOME of this test.
  void HideFrom(const std::string& host) const {
    const std::string folder = home().substr(0, home().rfind('/'));
    Process mount(hosts().On(host, {"mount", "-t", "tmpfs", "none", folder}));
    EXPECT_EQ(mount.Wait(), 0) << mount.err;
  }
  // Returns what Ray has of the output of an experiment's job, whose train command has said this.
  static std::string LogOfJob(const std::string& said_of_train) {
    const std::vector<std::string> jobs = After(said_of_train, "experiment 1 is job ");
    EXPECT_EQ(jobs.size(), 1) << said_of_train;
    return jobs.empty() ? "" : ray().Ask({"job", "logs", jobs[0].substr(0, jobs[0].find(' '))});
  }
  // Lets the tasks of an experiment end that wait for this file.
  void LetEnd(const std::string& id) { Write("../home/experiments/" + id + "/output/stop", ""); }

  // What a task does until LetEnd. It has a child of another session without a variable, which may not outlive it.
  static std::string UntilStop() {
    return "setsid env -i sleep 1000 & echo start >>$OUTPUT_DIR/starts; echo begins on $(hostname); "
           "until [ -e $OUTPUT_DIR/stop ]; do sleep 0.1; done";
  }

  std::string job_ = "nodes: 1";  // more keys of `ray`
  std::string grace_ = "10s";     // for which tasks go on without a supervisor
  std::string address_ = RayCluster::address(), python_ = RayCluster::python();

 private:
  struct Suite {
    SimulatedHosts hosts{3};
    RayCluster ray{hosts, {4, 4, 2}, {.gpus = {{"h3", "GPU-aaaa,GPU-bbbb"}}}};
    int tests = 0;
  };
  static std::unique_ptr<Suite>& OfSuite() {
    static std::unique_ptr<Suite> suite;
    return suite;
  }
  static std::string NewFolder() {
    if (!RayCluster::WhyNot().empty()) return "";
    if (OfSuite() == nullptr) OfSuite() = std::make_unique<Suite>();
    return absl::StrCat(OfSuite()->hosts.shared(), "/test", ++OfSuite()->tests);
  }
};

}  // namespace muster
