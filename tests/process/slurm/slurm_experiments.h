// A fixture for tests of `muster train --on slurm`: h0 submits to a real Slurm whose nodes are h1 to h4, with four CPUs
// each. h3 and h4 have two GPUs besides. All tests of a fixture have the same cluster.
#pragma once

#include <gmock/gmock.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/job_experiments.h"
#include "tests/process/testing/slurm_cluster.h"

namespace muster {

class SlurmExperiment : public JobExperiments {
 protected:
  SlurmExperiment() : JobExperiments(NewFolder()) {}
  static void TearDownTestSuite() { OfSuite().reset(); }
  void SetUp() override {
    if (const std::string why = SlurmCluster::WhyNot(); !why.empty()) GTEST_SKIP() << why;
  }
  void TearDown() override {
    if (OfSuite() == nullptr) return;
    for (const std::string& host : hosts().names()) slurm().AwaitNothingElseOn(host);
  }

  static SimulatedHosts& hosts() { return OfSuite()->hosts; }
  static SlurmCluster& slurm() { return OfSuite()->slurm; }

  std::vector<std::string> Command(const std::vector<std::string>& arguments) const override {
    std::vector<std::string> words = ExperimentsTest::Command(arguments);
    if (!path_.empty()) words = Joined({"env", "PATH=" + path_}, words);
    if (login_ != "h0") words = Joined({"env", "--chdir=" + project()}, words);
    return slurm().On(login_, words);
  }
  std::string MoreOfFile() const override { return absl::StrCat("on: slurm\ngrace: 10s\nslurm: {", job_, "}\n"); }

  // Starts an experiment that ends by itself at its LAST start, and waits for the line of its first.
  std::unique_ptr<Process> Train(int last, const std::string& job = "nodes: 1, nodelist: h1") {
    // Counts its starts in a file that stays.
    constexpr char kCounts[] =
        "run: 'echo start >>$OUTPUT_DIR/starts; n=$(wc -l <$OUTPUT_DIR/starts); echo start $n; [ $n -ge LAST ] || "
        "sleep 600'";
    job_ = job;
    WriteExperiment(absl::StrReplaceAll(kCounts, {{"LAST", absl::StrCat(last)}}));
    auto train = StartMuster({"train"});
    train->WaitForOut("start 1\n");
    return train;
  }
  // From now on commands and jobs find only these of Slurm's commands.
  void HaveOnly(const std::vector<std::string>& commands) {
    path_ = Aside("few");
    std::filesystem::create_directory(path_);
    for (const std::string& name : Joined({"sh", "bash", "sleep", "wc", "rm", "env"}, commands))
      std::filesystem::create_symlink(absl::StrCat("/usr/bin/", name), path_ + "/" + name);
  }
  // Kills what runs on a host and has `text` among its words, but nothing of Slurm.
  static void KillOn(const std::string& host, const std::string& text) {
    KillProcessesOn(hosts(), host, text, {"slurmd", "slurmstepd"});
  }

  std::string job_ = "nodes: 1";  // the keys of `slurm`
  std::string login_ = "h0";      // where commands run
  std::string path_;              // their PATH; empty: the usual one

 private:
  struct Suite {
    SimulatedHosts hosts{4};
    SlurmCluster slurm{hosts, {4, 4, 4, 4}, {.gpu_hosts = {"h3", "h4"}}};
    int tests = 0;
  };
  static std::unique_ptr<Suite>& OfSuite() {
    static std::unique_ptr<Suite> suite;
    return suite;
  }
  static std::string NewFolder() {
    if (!SlurmCluster::WhyNot().empty()) return "";
    if (OfSuite() == nullptr) OfSuite() = std::make_unique<Suite>();
    return absl::StrCat(OfSuite()->hosts.shared(), "/test", ++OfSuite()->tests);
  }
};

}  // namespace muster
