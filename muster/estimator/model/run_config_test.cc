#include "muster/estimator/model/run_config.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <string>

#include "muster/base/files/file_system.h"
#include "muster/base/wrong_configuration.h"
#include "muster/cluster/identity/environment.h"

namespace muster::run_config_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr;

constexpr char kCluster[] = R"("cluster": {"chief": ["h:1"], "ps": ["h:2"], "worker": ["h:3", "h:4"]})";

Environment WithTfConfig(const std::string& type, int index, const std::string& more = "") {
  return {.tf_config = "{" + std::string(kCluster) + R"(, "task": {"type": ")" + type + R"(", "index": )" +
                       std::to_string(index) + "}" + more + "}"};
}

TEST(RunConfigTest, DefaultsAreTensorFlows) {
  const RunConfig config;
  EXPECT_EQ(config.save_summary_steps, 100);
  EXPECT_FALSE(config.save_checkpoints_secs.has_value());
  EXPECT_FALSE(config.save_checkpoints_steps.has_value());
  EXPECT_EQ(config.keep_checkpoint_max, 5);
  EXPECT_EQ(config.keep_checkpoint_every_n_hours, 10000);
  EXPECT_EQ(config.log_step_count_steps, 100);
  EXPECT_EQ(config.session_creation_timeout_secs, 7200);
  EXPECT_FALSE(config.seed.has_value());
}

TEST(RunConfigTest, TheTaskIsTfConfigs) {
  const auto chief = ResolveRunConfig({.model_dir = "/m"}, WithTfConfig("chief", 0)).value();
  EXPECT_EQ(TaskTypeOf(chief), "chief");
  EXPECT_EQ(NumWorkerReplicas(chief), 3);
  EXPECT_TRUE(chief.task->is_chief());
  const auto evaluator = ResolveRunConfig({.model_dir = "/m"}, WithTfConfig("evaluator", 0)).value();
  EXPECT_EQ(TaskTypeOf(evaluator), "evaluator");
  EXPECT_EQ(NumWorkerReplicas(evaluator), 0);
  const auto alone = ResolveRunConfig({.model_dir = "/m"}, {}).value();
  EXPECT_EQ(TaskTypeOf(alone), "worker");
  EXPECT_EQ(NumWorkerReplicas(alone), 1);
}

TEST(RunConfigTest, ItsTextIsWhatIsInForce) {
  const auto chief =
      ResolveRunConfig({.model_dir = "/m", .seed = 7, .save_checkpoints_steps = 50}, WithTfConfig("chief", 0)).value();
  EXPECT_EQ(
      RunConfigText(chief),
      "model_dir = /m, seed = 7, save_summary_steps = 100, save_checkpoints_steps = 50, keep_checkpoint_max = 5, "
      "keep_checkpoint_every_n_hours = 10000, log_step_count_steps = 100, algorithm = hogwild, task_type = chief, "
      "task_id = 0, is_chief = true, num_worker_replicas = 3, num_ps_replicas = 1");
  const auto evaluator = ResolveRunConfig({.model_dir = "/m"}, WithTfConfig("evaluator", 0)).value();
  EXPECT_THAT(RunConfigText(evaluator),
              AllOf(HasSubstr("seed = None"), HasSubstr("save_checkpoints_secs = 600"), HasSubstr("is_chief = false"),
                    HasSubstr("num_worker_replicas = 0, num_ps_replicas = 0")));
}

TEST(RunConfigTest, ATaskThatIsGivenIsNotReadFromTheEnvironment) {
  const auto config = ResolveRunConfig({.model_dir = "/m", .task = TaskConfig()}, {.tf_config = "no JSON"}).value();
  EXPECT_FALSE(config.task->distributed());
}

TEST(RunConfigTest, TheModelDirIsTheProgramsOrTfConfigs) {
  const std::string said = R"(, "model_dir": "/there")";
  EXPECT_EQ(ResolveRunConfig({}, WithTfConfig("chief", 0, said))->model_dir, "/there");
  EXPECT_EQ(ResolveRunConfig({.model_dir = "/there"}, WithTfConfig("chief", 0, said))->model_dir, "/there");
  EXPECT_EQ(ResolveRunConfig({.model_dir = "/here"}, WithTfConfig("chief", 0))->model_dir, "/here");
  const auto two = ResolveRunConfig({.model_dir = "/here"}, WithTfConfig("chief", 0, said));
  EXPECT_TRUE(IsWrongConfiguration(two.status()));
  EXPECT_THAT(std::string(two.status().message()), AllOf(HasSubstr("'/here'"), HasSubstr("'/there'")));
}

TEST(RunConfigTest, WithoutAModelDirThereIsATemporaryFolder) {
  const auto config = ResolveRunConfig({}, {}).value();
  EXPECT_TRUE(std::filesystem::is_directory(config.model_dir)) << config.model_dir;
  const auto other = ResolveRunConfig({}, {}).value();
  EXPECT_NE(config.model_dir, other.model_dir);
  EXPECT_EQ(PosixFileSystem().RemoveTree(config.model_dir), absl::OkStatus());
  EXPECT_EQ(PosixFileSystem().RemoveTree(other.model_dir), absl::OkStatus());
}

TEST(RunConfigTest, APlacementTableMayBeAskedForInEitherPlace) {
  EXPECT_TRUE(
      ResolveRunConfig({.model_dir = "/m", .log_device_placement = true}, {})->session_config.log_device_placement);
  EXPECT_TRUE(ResolveRunConfig({.model_dir = "/m", .session_config = {.log_device_placement = true}}, {})
                  ->log_device_placement);
  EXPECT_FALSE(ResolveRunConfig({.model_dir = "/m"}, {})->session_config.log_device_placement);
}

TEST(RunConfigTest, AResolvedConfigStaysAsItIs) {
  const auto once = ResolveRunConfig({.model_dir = "/m", .seed = 3}, WithTfConfig("worker", 1)).value();
  const auto twice = ResolveRunConfig(once, {}).value();
  EXPECT_EQ(*twice.task, *once.task);
  EXPECT_EQ(twice.model_dir, "/m");
}

struct Mistake {
  const char* name;  // in the message
  std::function<void(RunConfig&)> make;
};

TEST(RunConfigTest, EveryWrongFieldIsNamed) {
  const Mistake mistakes[] = {
      {"save_summary_steps is -1", [](RunConfig& config) { config.save_summary_steps = -1; }},
      {"save_checkpoints_secs is -2", [](RunConfig& config) { config.save_checkpoints_secs = -2; }},
      {"save_checkpoints_secs is nan", [](RunConfig& config) { config.save_checkpoints_secs = std::nan(""); }},
      {"save_checkpoints_steps is -3", [](RunConfig& config) { config.save_checkpoints_steps = -3; }},
      {"both save_checkpoints_secs (60) and save_checkpoints_steps (10)",
       [](RunConfig& config) {
         config.save_checkpoints_secs = 60;
         config.save_checkpoints_steps = 10;
       }},
      {"keep_checkpoint_max is -1", [](RunConfig& config) { config.keep_checkpoint_max = -1; }},
      {"keep_checkpoint_every_n_hours is 0", [](RunConfig& config) { config.keep_checkpoint_every_n_hours = 0; }},
      {"log_step_count_steps is -1", [](RunConfig& config) { config.log_step_count_steps = -1; }},
      {"session_creation_timeout_secs is -1", [](RunConfig& config) { config.session_creation_timeout_secs = -1; }},
      {"intra_op_parallelism_threads",
       [](RunConfig& config) { config.session_config.intra_op_parallelism_threads = -1; }},
      {"hogwild", [](RunConfig& config) { config.algorithm.name = "hogwil"; }},
  };
  for (const Mistake& mistake : mistakes) {
    RunConfig config{.model_dir = "/m"};
    mistake.make(config);
    const absl::Status status = ResolveRunConfig(config, {}).status();
    EXPECT_TRUE(IsWrongConfiguration(status)) << mistake.name;
    EXPECT_THAT(std::string(status.message()), HasSubstr(mistake.name));
  }
}

TEST(RunConfigTest, WhatTfConfigSaysWronglyIsUsage) {
  EXPECT_TRUE(IsWrongConfiguration(ResolveRunConfig({.model_dir = "/m"}, {.tf_config = "no JSON"}).status()));
  const auto second = ResolveRunConfig({.model_dir = "/m"}, WithTfConfig("evaluator", 1));
  EXPECT_TRUE(IsWrongConfiguration(second.status()));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("evaluator:1"));
  const auto nowhere = ResolveRunConfig({}, WithTfConfig("evaluator", 0));
  EXPECT_TRUE(IsWrongConfiguration(nowhere.status()));
  EXPECT_THAT(std::string(nowhere.status().message()), HasSubstr("model_dir"));
}

TEST(RunConfigTest, InAClusterTheChiefIsToldItsModelDir) {
  const absl::Status chief = ResolveRunConfig({}, WithTfConfig("chief", 0)).status();
  EXPECT_TRUE(IsWrongConfiguration(chief));
  EXPECT_THAT(std::string(chief.message()), HasSubstr("give every task --model_dir=FOLDER"));
  const auto worker = ResolveRunConfig({}, WithTfConfig("worker", 0)).value();  // it saves nothing
  EXPECT_EQ(PosixFileSystem().RemoveTree(worker.model_dir), absl::OkStatus());
}

}  // namespace
}  // namespace muster::run_config_test
