// What `muster manifest --form job` prints, run by a stand-in for a cluster: no supervisor and no agent are there.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/files/file_system.h"
#include "muster/base/testing/built_at.h"
#include "nlohmann/json.hpp"
#include "tests/process/kubernetes/kubernetes_experiment.h"

namespace muster::manifest_run_test {
namespace {

using ::testing::HasSubstr, ::testing::SizeIs;

class KubernetesManifest : public KubernetesExperiment {
 protected:
  // Applies the files of a cluster named `name` whose tasks run `program`.
  void ApplyJobs(const std::string& name, const std::vector<std::string>& flags,
                 const std::vector<std::string>& program) {
    std::vector<std::string> words = {"manifest", "--form", "job", "--image", "muster:1", "--name", name};
    words.insert(words.end(), flags.begin(), flags.end());
    words.push_back("--");
    words.insert(words.end(), program.begin(), program.end());
    const Said said = Muster(words);
    ASSERT_EQ(said.exit_code, 0) << said.err;
    cluster().Apply(said.out);
    selector_ = absl::StrCat("--selector=app.kubernetes.io/instance=", name);
  }
  void TearDown() override {
    if (!selector_.empty()) cluster().Ask({"delete", "jobs,pods,services,secrets", selector_});
    KubernetesExperiment::TearDown();
  }
  // Waits until a job has come to that: "complete", "failed".
  static void AwaitJob(const std::string& job, const std::string& condition) {
    cluster().Ask({"wait", absl::StrCat("--for=condition=", condition), absl::StrCat("job/", job), "--timeout=100s"});
  }
  std::vector<std::string> PodsOf(const std::string& role) const {
    return absl::StrSplit(
        cluster().Ask({"get", "pods", absl::StrCat(selector_, ",app.kubernetes.io/component=", role), "--output=name"}),
        '\n', absl::SkipEmpty());
  }

 private:
  std::string selector_;
};

TEST_F(KubernetesManifest, ThePlainFormTrainsAndItsPsEndsByItself) {
  ApplyJobs("digits",
            {"--claim", "gate:/gate", "--env", "MUSTER_LINGER=3", "--workers", "2", "--model_dir",
             absl::StrCat("/gate/", Gate(), "-model")},
            {BinFolder() + "/digits", "--csv=" + SourceFolder() + "/examples/data/digits.csv", "--steps=100",
             absl::StrCat("--report=/gate/", Gate(), "-report.json")});
  AwaitJob("digits-worker", "complete");
  AwaitJob("digits-ps", "complete");
  EXPECT_THAT(PodsOf("worker"), SizeIs(2)) << "none was started twice";
  const std::string report = PosixFileSystem().ReadFile(InClaim(Gate() + "-report.json")).value_or("{}");
  EXPECT_GE(nlohmann::json::parse(report).value("accuracy", 0.0), 0.8) << cluster().Ask({"logs", "job/digits-worker"});
}

class KubernetesManifestLong : public KubernetesManifest {};

// Neither finds the other at first, and no pod fails because of that.
TEST_F(KubernetesManifestLong, NamesThatComeLateAreWaitedFor) {
  SetFaults(R"({"dns_delay_s": 8})");
  ApplyJobs("late",
            {"--claim", "gate:/gate", "--env", "MUSTER_LINGER=3", "--workers", "2", "--model_dir",
             absl::StrCat("/gate/", Gate(), "-model")},
            {BinFolder() + "/digits", "--csv=" + SourceFolder() + "/examples/data/digits.csv", "--steps=20"});
  AwaitJob("late-worker", "complete");
  AwaitJob("late-ps", "complete");
  for (const char* role : {"ps", "worker"})
    EXPECT_THAT(PodsOf(role), SizeIs(role == std::string("ps") ? 1 : 2)) << "none was started twice: " << role;
}

TEST_F(KubernetesManifest, AMistakeOfTheUserIsTriedOnceAndItsPodStaysReadable) {
  ApplyJobs("mistaken", {"--workers", "1"}, {"/bin/sh", "-c", "echo no such flag; exit 2"});
  AwaitJob("mistaken-worker", "failed");
  const std::vector<std::string> pods = PodsOf("worker");
  ASSERT_THAT(pods, SizeIs(1));
  EXPECT_THAT(cluster().Ask({"logs", pods[0]}), HasSubstr("no such flag"));
}

TEST_F(KubernetesManifest, ATaskThatEndsAsIfKilledIsStartedAgain) {
  // The ps runs the same program.
  const std::string first = absl::StrCat("/gate/", Gate(), "-$(hostname)");
  ApplyJobs("killed", {"--claim", "gate:/gate", "--workers", "1"},
            {"/bin/sh", "-c", absl::StrCat("[ -e ", first, " ] && exit 0; touch ", first, "; exit 137")});
  AwaitJob("killed-worker", "complete");
  EXPECT_THAT(PodsOf("worker"), SizeIs(2));
}

}  // namespace
}  // namespace muster::manifest_run_test
