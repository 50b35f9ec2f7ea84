// A fixture for tests of `muster train --on spark` with a real Spark on this machine: a local-cluster of two executors
// for each experiment.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "tests/process/testing/job_experiments.h"
#include "tests/process/testing/spark_cluster.h"

namespace muster {

class SparkExperiment : public JobExperiments {
 protected:
  SparkExperiment() {
    // All processes of the job have the mark, those of Spark, too; what Spark writes is the test's.
    environment_ = {mark(), "SPARK_WORKER_DIR=" + Aside("work"), "SPARK_LOCAL_DIRS=" + Aside("local"), "SPARK_HOME="};
  }
  void SetUp() override {
    if (const std::string why = SparkCluster::WhyNoSpark(); !why.empty()) GTEST_SKIP() << why;
  }
  void TearDown() override { ExpectNoneWith(""); }

  std::string MoreOfFile() const override {
    return absl::StrCat("on: spark\ngrace: 10s\nspark:\n  address: \"", address_,
                        "\"\n  python: ", SparkCluster::python(), "\n  conf: {spark.ui.enabled: false", conf_, "}\n",
                        more_);
  }
  std::string mark() const { return "SPARK_TEST_MARK=" + home(); }
  // Kills the processes of this test that have `text` among their words. Returns how many that are.
  int KillWith(const std::string& text) const {
    int killed = 0;
    for (const pid_t pid : ProcessesWith(mark())) killed += HasWord(pid, text) && kill(pid, SIGKILL) == 0 ? 1 : 0;
    return killed;
  }
  // Waits until no process of this test has `text` among its words.
  void ExpectNoneWith(const std::string& text) const {
    const absl::Time give_up = absl::Now() + absl::Minutes(1);
    std::string left = "?";
    while (!left.empty() && absl::Now() < give_up) {
      left.clear();
      for (const pid_t pid : ProcessesWith(mark()))
        if (HasWord(pid, text)) absl::StrAppend(&left, pid, " ", WordsOf(pid), "\n");
    }
    EXPECT_EQ(left, "");
  }
  std::string Reason(const std::string& id) { return Json({"status", id})["reason"].get<std::string>(); }
  // What is there to understand a failure.
  std::string Logs() const { return Read("experiments/1/job.out") + Read("experiments/1/spark.log"); }
  void LetEnd(const std::string& id) { Write("../home/experiments/" + id + "/output/stop", ""); }
  static std::string UntilStop() {
    return "echo start >>$OUTPUT_DIR/starts; echo begins; until [ -e $OUTPUT_DIR/stop ]; do sleep 0.1; done";
  }

  std::string address_ = "local-cluster[2,1,1024]";
  std::string conf_;                   // more settings, ", spark.a: b"
  std::string more_ = "  nodes: 2\n";  // more keys of `spark`

 private:
  static std::string WordsOf(pid_t pid) {
    std::string words = PosixFileSystem().ReadFile(absl::StrCat("/proc/", pid, "/cmdline")).value_or("");
    for (char& c : words) c = c == '\0' ? ' ' : c;
    return words;
  }
  static bool HasWord(pid_t pid, const std::string& text) { return absl::StrContains(WordsOf(pid), text); }
};

}  // namespace muster
