// What pods give to their tasks and take from them, with the real kubectl and a stand-in for a cluster. Not of every
// day.
#include <gmock/gmock.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/testing/built_at.h"
#include "tests/process/kubernetes/kubernetes_experiment.h"
#include "tests/process/testing/by_hand.h"

namespace muster::kubernetes_pods_test {
namespace {

using ::testing::Contains, ::testing::ContainsRegex, ::testing::HasSubstr, ::testing::Not;

class KubernetesPodsLong : public KubernetesExperiment {
 protected:
  // Sets a variable in the container of each pod, of which one has all tasks.
  void GiveToPods(const std::string& name, const std::string& value) {
    pods_ = absl::StrCat("nodes: 1, pod_template: {spec: {containers: [{name: muster, env: [{name: ", name,
                         ", value: \"", value, "\"}]}]}}");
  }
};

// What the device plugin gives to the pod is the pool of its tasks.
TEST_F(KubernetesPodsLong, GpusOfAPodAreSharedOutUnderTheNamesThatItHasForThem) {
  const auto train = [this](const std::string& pool) {
    GiveToPods("CUDA_VISIBLE_DEVICES", pool);
    Write("muster.yml",
          "project: toy\ntrain:\n  framework: tensorflow\n  restart: {policy: never}\n  tensorflow:\n    distributed:\n"
          "      ps: 1\n      worker: {count: 2, resources: {gpus: 1}}\n      evaluator: true\n"
          "  run: echo sees \"[$CUDA_VISIBLE_DEVICES]\"\n");
    return Muster({"train", "--no-venv"});
  };
  const Said some = train("GPU-a,MIG-b");
  EXPECT_EQ(some.exit_code, 0) << some.out << some.err << Read("experiments/1/job.out");
  for (const auto& [task, gpus] :
       {std::pair("1.ps.1", ""), {"1.master", "GPU-a"}, {"1.worker.1", "MIG-b"}, {"1.evaluator", ""}})
    EXPECT_THAT(LinesOf(some.out, task), Contains(absl::StrCat("sees [", gpus, "]"))) << some.out;
  EXPECT_THAT(Read("experiments/1/job.sh"), HasSubstr("nvidia.com/gpu: \"2\""));
  const Said none = train("");
  EXPECT_NE(none.exit_code, 0) << none.out;
  EXPECT_THAT(none.out + none.err, HasSubstr("the host's own CUDA_VISIBLE_DEVICES is '', which has 0"));
}

// Their abstract sockets are in different namespaces: they meet over TCP, and nobody is told so at each connection.
TEST_F(KubernetesPodsLong, TwoPodsOfANodeTrainOverTcpWithoutAWarning) {
  pods_ = "nodes: 2, node_selector: {kubernetes.io/hostname: h1}";
  Write("muster.yml", absl::StrCat("project: digits\ntrain:\n  framework: muster\n  muster:\n    distributed: {ps: 1, "
                                   "worker: 2}\n  run: ",
                                   BinFolder(), "/digits --csv=", SourceFolder(),
                                   "/examples/data/digits.csv --steps=100 --model_dir=$OUTPUT_DIR\n"));
  const Said said = Muster({"train"});
  EXPECT_EQ(said.exit_code, 0) << said.out << said.err << Read("experiments/1/job.out");
  EXPECT_THAT(said.out + said.err, Not(ContainsRegex("[Ww]arning|shared memory|abstract")));
}

// The run of a supervisor that may ask the API is killed if somebody deletes that one's pod.
TEST_F(KubernetesPodsLong, WithAServiceAccountADeletionIsToldFromADrain) {
  MakeTrainer();
  pods_ = "nodes: 2, service_account: trainer";
  WriteCluster("{worker: 2}", UntilStop());
  const auto deleted = StartMuster({"train"});
  for (const char* task : {"1.master", "1.worker.1"}) AwaitLines(*deleted, task, 2);
  cluster().Ask({"delete", "pod", JobOf("1"), "--wait=false"});
  EXPECT_NE(deleted->Wait(), 0) << deleted->err;
  EXPECT_EQ(StateOf("1"), "KILLED");
  EXPECT_THAT(Json({"status", "1"})["reason"].get<std::string>(),
              ContainsRegex("its job muster-1-[0-9a-f]+ of Kubernetes was cancelled: [^;]*deleted"));
  const auto drained = StartMuster({"train"});
  for (const char* task : {"2.master", "2.worker.1"}) AwaitLines(*drained, task, 2);
  cluster().Script("pods/evict", nlohmann::json{{"pod", JobOf("2")}}.dump());
  EXPECT_NE(drained->Wait(), 0) << drained->err;
  EXPECT_EQ(StateOf("2"), "FAILED");
  EXPECT_THAT(Json({"status", "2"})["reason"].get<std::string>(), HasSubstr("muster train --experiment 2 goes on"));
}

}  // namespace
}  // namespace muster::kubernetes_pods_test
