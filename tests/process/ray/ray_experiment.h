// A fixture for tests of `muster train --on ray` with a real Ray on three simulated hosts, which all tests share.
#pragma once

#include <signal.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/process/testing/experiments.h"
#include "tests/process/testing/ray_cluster.h"

namespace muster {

class RayExperiment : public ExperimentsTest {
 protected:
  RayExperiment() : ExperimentsTest(NewFolder()) {}
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
    return absl::StrCat("on: ray\ngrace: 10s\nray: {address: \"", address_, "\", python: ", RayCluster::python(), ", ",
                        job_, "}\n");
  }
  // Writes a file in which each task runs `script`, which has no "'".
  void WriteCluster(const std::string& distributed, const std::string& script) {
    Write("muster.yml", absl::StrCat("project: toy\ntrain:\n  framework: tensorflow\n  tensorflow: ", "{distributed: ",
                                     distributed, "}\n  run: '", script, "'\n"));
  }
  std::string JobOf(const std::string& id) { return Json({"status", id})["job"]["id"].get<std::string>(); }
  // Waits until `status ID` shows this.
  void AwaitStatus(const std::string& id, const std::string& text) {
    std::string shown;
    for (const absl::Time give_up = absl::Now() + absl::Minutes(1);
         !absl::StrContains(shown, text) && absl::Now() < give_up;)
      shown = Muster({"status", id}).out;
    EXPECT_TRUE(absl::StrContains(shown, text)) << shown;
  }
  // Waits until a supervisor has gone on with the tasks of one that was killed.
  void AwaitTakeOver() {
    std::string said;
    for (const absl::Time give_up = absl::Now() + absl::Minutes(1);
         !absl::StrContains(said, "another one goes on with its ") && absl::Now() < give_up;)
      said = Read("experiments/1/logs/experiment/000001.log");
    EXPECT_TRUE(absl::StrContains(said, "another one goes on with its ")) << said;
  }
  // Kills what runs on a host and has `text` among its words. Returns how many that are.
  static int KillOn(const std::string& host, const std::string& text) {
    int killed = 0;
    for (const SimulatedHosts::Running& running : hosts().ProcessesOf(host))
      if (absl::StrContains(running.words, text)) killed += kill(running.pid, SIGKILL) == 0 ? 1 : 0;
    return killed;
  }
  // Lets the tasks of an experiment end that wait for this file.
  void LetEnd(const std::string& id) { Write("../home/experiments/" + id + "/output/stop", ""); }

  std::string job_ = "nodes: 1";  // more keys of `ray`
  std::string address_ = RayCluster::address();

 private:
  struct Suite {
    SimulatedHosts hosts{3};
    RayCluster ray{hosts, {4, 4, 2}};
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
