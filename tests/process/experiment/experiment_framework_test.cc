// Training scripts that know nothing of muster, as their frameworks' own launchers would start them: torch.distributed
// with torchrun's variables, a tf.compat.v1 parameter-server script with TF_CONFIG.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/testing/built_at.h"
#include "tests/process/testing/engines.h"

namespace muster::experiment_framework_test {
namespace {

using nlohmann::json;
using ::testing::Contains, ::testing::HasSubstr;

constexpr char kTorchScript[] = R"(import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
model = DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(100):
    x = torch.randn(32, 4)
    loss = torch.nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"rank {dist.get_rank()} of {dist.get_world_size()} has trained to a loss below 0.1: {bool(loss < 0.1)}")
dist.destroy_process_group()
)";

constexpr char kTensorFlowScript[] = R"(import json
import os

import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
config = json.loads(os.environ["TF_CONFIG"])
job, index = config["task"]["type"], config["task"]["index"]
cluster = tf.train.ClusterSpec(config["cluster"])
server = tf.train.Server(cluster, job_name=job, task_index=index)
if job == "ps":
    server.join()

with tf.device(tf.train.replica_device_setter(worker_device=f"/job:{job}/task:{index}", cluster=cluster)):
    x = tf.random_normal([32, 4])
    w = tf.get_variable("w", [4, 1])
    loss = tf.losses.mean_squared_error(tf.reduce_sum(x, 1, keepdims=True), tf.matmul(x, w))
    step = tf.train.get_or_create_global_step()
    train = tf.train.GradientDescentOptimizer(0.05).minimize(loss, global_step=step)

supervisor = tf.train.Supervisor(is_chief=job == "master", logdir=os.environ["OUTPUT_DIR"], global_step=step,
                                 recovery_wait_secs=1)
filters = tf.ConfigProto(device_filters=["/job:ps", f"/job:{job}/task:{index}"])
with supervisor.managed_session(server.target, config=filters) as session:
    last = 0
    while not supervisor.should_stop() and last < 200:
        _, last, value = session.run([train, step, loss])
print(f"{job} {index} has trained to a loss below 0.1: {value < 0.1}")
)";

bool CanImport(const std::string& python, const std::string& module) {
  if (!std::filesystem::exists(python)) return false;
  Process process({python, "-c", "import " + module}, {.environment = {{"TF_CPP_MIN_LOG_LEVEL", "2"}}});
  return process.Wait() == 0;
}

// Returns the folder of a python that can import it, this project's own or that of `./dev bench peers`; "" if there is
// none.
std::string PythonFolderWith(const std::string& module) {
  for (const std::string& folder : {SourceFolder() + "/.venv/bin", SourceFolder() + "/build/peers/bin"})
    if (CanImport(folder + "/python", module)) return folder;
  return "";
}

class ExperimentFramework : public OnEveryEngine {
 protected:
  // Returns the lines of `train` by which tasks find this python first. (Nothing of a shell goes to hosts.)
  static std::string OnPath(const std::string& folder) {
    return absl::StrCat("  env: {PATH: '", folder, ":", getenv("PATH"), "', TF_CPP_MIN_LOG_LEVEL: 2}\n");
  }
};

INSTANTIATE_TEST_SUITE_P(, ExperimentFramework, EveryEngine(), EngineName);

TEST_P(ExperimentFramework, TasksFindTorchrunsVariables) {
  WriteExperiment(
      "torchrun: {workers: 2, processes: 2}\n"
      "run: echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $GROUP_RANK $MASTER_ADDR:$MASTER_PORT");
  const std::string shown = Out({"train"});
  std::set<std::string> addresses;
  const std::vector<std::string> ranks = {"0 0 4 2 0", "1 1 4 2 0", "2 0 4 2 1", "3 1 4 2 1"};
  for (size_t i = 0; i < ranks.size(); ++i) {
    const std::vector<std::string> lines = LinesOf(shown, absl::StrCat("1.worker.", i + 1));
    ASSERT_EQ(lines.size(), 3) << shown;
    const size_t space = lines[1].rfind(' ');
    EXPECT_EQ(lines[1].substr(0, space), ranks[i]);
    addresses.insert(lines[1].substr(space + 1));
  }
  EXPECT_EQ(addresses.size(), 1);
  EXPECT_THAT(*addresses.begin(),
              testing::MatchesRegex(on_hosts() ? "10\\.77\\.0\\.11:[1-9][0-9]*" : "127\\.0\\.0\\.1:[1-9][0-9]*"));
}

TEST_P(ExperimentFramework, TheFirstWorkerDecidesUnderTorchrun) {
  WriteExperiment("torchrun: {workers: 2}\nrun: '[ $RANK = 0 ] && exit 5; while :; do sleep 1000; done'");
  const Said said = Muster({"train"});
  EXPECT_EQ(said.exit_code, 5);
  EXPECT_EQ(StatesOf(said.out, "1.worker.2").back(), "KILLED");
}

TEST_P(ExperimentFramework, AScriptOfTorchDistributedRunsAsItIs) {
  const std::string folder = PythonFolderWith("torch.distributed");
  if (folder.empty()) GTEST_SKIP() << "no python with torch in .venv or build/peers (./dev setup installs it)";
  Write("train.py", kTorchScript);
  Write("muster.yml",
        "project: toy\ntrain:\n  framework: pytorch\n  torchrun: {workers: 1, processes: 2}\n"
        "  run: python train.py\n" +
            OnPath(folder));
  const std::string shown = Out({"train"});
  for (const std::string rank : {"0", "1"}) {
    const std::string name = absl::StrCat("1.worker.", std::stoi(rank) + 1);
    EXPECT_THAT(LinesOf(shown, name), Contains("rank " + rank + " of 2 has trained to a loss below 0.1: True"));
    EXPECT_EQ(StatesOf(shown, name).back(), "FINISHED");
  }
}

TEST_P(ExperimentFramework, AParameterServerScriptOfTensorFlowRunsAsItIs) {
  // One and a half gigabytes, half a minute; skipped if it is already installed.
  const char* const wanted = getenv("MUSTER_TEST_TENSORFLOW");
  if (wanted != nullptr && std::string_view(wanted) == "0") GTEST_SKIP() << "MUSTER_TEST_TENSORFLOW is 0";
  Process install({"/usr/bin/env", "python3", SourceFolder() + "/bench/peers/environment.py", "tensorflow"});
  if (install.Wait() != 0) GTEST_SKIP() << install.err;
  const std::string folder = PythonFolderWith("tensorflow.compat.v1");
  ASSERT_FALSE(folder.empty());
  Write("train.py", kTensorFlowScript);
  Write("muster.yml",
        "project: toy\ntrain:\n  framework: tensorflow\n  tensorflow:\n    distributed: {worker: 2, ps: 1}\n"
        "  run: python train.py\n" +
            OnPath(folder));
  const std::string shown = Out({"train", "--no-venv"});
  EXPECT_THAT(LinesOf(shown, "1.master"), Contains("master 0 has trained to a loss below 0.1: True"));
  EXPECT_THAT(LinesOf(shown, "1.worker.1"), Contains("worker 0 has trained to a loss below 0.1: True"));
  EXPECT_EQ(StatesOf(shown, "1.worker.1").back(), "FINISHED");
  EXPECT_EQ(StatesOf(shown, "1.ps.1").back(), "FINISHED") << "it never ends by itself";
  const json result = Json({"show", "1"});
  EXPECT_EQ(result["state"], "FINISHED");
  EXPECT_THAT(result["files"].dump(), HasSubstr("model.ckpt"));
}

}  // namespace
}  // namespace muster::experiment_framework_test
