// A training script that knows nothing of muster: a tf.compat.v1 parameter-server script with TF_CONFIG.
#include <gmock/gmock.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "muster/base/testing/built_at.h"
#include "tests/process/testing/engines.h"
#include "tests/process/testing/python_with.h"

namespace muster::experiment_framework_test {
namespace {

using nlohmann::json;
using ::testing::Contains, ::testing::HasSubstr;

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

class ExperimentFramework : public OnEveryEngine {};

INSTANTIATE_TEST_SUITE_P(, ExperimentFramework, EveryEngine(), EngineName);

TEST_P(ExperimentFramework, AParameterServerScriptOfTensorFlowRunsAsItIs) {
  // One and a half gigabytes, half a minute; skipped if it is already installed.
  const char* const wanted = getenv("MUSTER_TEST_TENSORFLOW");
  if (wanted != nullptr && std::string_view(wanted) == "0")
    GTEST_SKIP() << NoTestBecause("MUSTER_TEST_TENSORFLOW is 0");
  Process install({"/usr/bin/env", "python3", SourceFolder() + "/bench/peers/environment.py", "tensorflow"});
  if (install.Wait() != 0) GTEST_SKIP() << NoTestBecause(install.err);
  const std::string folder = PythonFolderWith("tensorflow.compat.v1");
  ASSERT_FALSE(folder.empty());
  Write("train.py", kTensorFlowScript);
  Write("muster.yml",
        "project: toy\ntrain:\n  framework: tensorflow\n  tensorflow:\n    distributed: {worker: 2, ps: 1}\n"
        "  run: python train.py\n" +
            PythonFirst(folder));
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
