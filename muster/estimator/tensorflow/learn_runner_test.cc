#include "muster/estimator/tensorflow/learn_runner.h"

#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/testing/scratch_folder.h"
#include "muster/base/wrong_configuration.h"
#include "muster/optim/rule_options.h"
#include "muster/train/threads/error.h"

namespace muster::learn_runner_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr;

TaskConfig TaskOf(const std::string& cluster, const std::string& type, int index) {
  return ResolveTaskConfig({.tf_config = absl::StrCat("{\"cluster\": ", cluster, ", \"task\": {\"type\": \"", type,
                                                      "\", \"index\": ", index, "}}"),
                            .flags = {}})
      .value();
}

std::string DefaultOf(const std::string& cluster, const std::string& type, int index) {
  return learn_runner::DefaultSchedule(TaskOf(cluster, type, index)).value();
}

TEST(DefaultScheduleTest, ByTheTask) {
  EXPECT_EQ(*learn_runner::DefaultSchedule(TaskConfig()), "train_and_evaluate");

  const std::string master = R"({"master": ["h:1"], "ps": ["h:2"], "worker": ["h:3", "h:4"]})";
  EXPECT_EQ(DefaultOf(master, "master", 0), "train_and_evaluate");
  EXPECT_EQ(DefaultOf(master, "ps", 0), "run_std_server");
  EXPECT_EQ(DefaultOf(master, "worker", 0), "train");
  EXPECT_EQ(DefaultOf(master, "worker", 1), "train");

  const std::string chief = R"({"chief": ["h:1"], "ps": ["h:2"], "worker": ["h:3"]})";
  EXPECT_EQ(DefaultOf(chief, "chief", 0), "train_and_evaluate");
  EXPECT_EQ(DefaultOf(chief, "worker", 0), "train");
  EXPECT_EQ(DefaultOf(chief, "evaluator", 0), "continuous_eval");

  const std::string neither = R"({"ps": ["h:2"], "worker": ["h:3", "h:4"]})";
  EXPECT_EQ(DefaultOf(neither, "worker", 0), "train_and_evaluate") << "it is the chief";
  EXPECT_EQ(DefaultOf(neither, "worker", 1), "train");
}

TEST(DefaultScheduleTest, WhereTheClusterListsAnEvaluatorTheChiefOnlyTrains) {
  const std::string cluster = R"({"chief": ["h:1"], "ps": ["h:2"], "worker": ["h:3"], "evaluator": ["h:4"]})";
  EXPECT_EQ(DefaultOf(cluster, "chief", 0), "train");
  EXPECT_EQ(DefaultOf(cluster, "evaluator", 0), "continuous_eval");
}

TEST(DefaultScheduleTest, AnotherJobHasNone) {
  const auto schedule = learn_runner::DefaultSchedule(TaskOf(R"({"chief": ["h:1"], "cook": ["h:2"]})", "cook", 0));
  EXPECT_TRUE(IsWrongConfiguration(schedule.status())) << schedule.status();
  EXPECT_THAT(schedule.status().message(), HasSubstr("\"cook\""));
}

TEST(SchedulesTest, AreThoseOfContribLearn) {
  EXPECT_THAT(learn_runner::Schedules(),
              ElementsAre("train", "evaluate", "continuous_eval", "continuous_eval_on_train_data", "train_and_evaluate",
                          "continuous_train_and_eval", "run_std_server", "local_run", "test"));
}

class RunTest : public testing::Test {
 protected:
  // One weight that becomes 3, in a model that looks at no feature.
  Experiment Make(const std::string& model_dir, TaskConfig task = {}) {
    ++made_;
    const ModelFn model_fn = [](const ModelContext&) {
      const torch::nn::Linear layer(torch::nn::LinearOptions(1, 1).bias(false));
      EstimatorSpec spec;
      spec.module = layer.ptr();
      spec.forward = [layer](const Minibatch&) {
        return ModelOutputs{.predictions = {}, .loss = (layer->weight - 3).square().sum()};
      };
      spec.optimizer = Sgd({.learning_rate = 0.1});
      return spec;
    };
    const InputFn input = [](const InputContext&) {
      Example rows{.features = {}, .labels = Array::Of<float>({1}, std::vector<float>{0}), .has_labels = true};
      rows.features.push_back({"x", Array::Of<float>({1, 1}, std::vector<float>{0})});
      return Dataset::FromMemory(std::move(rows)).Batch(1).Repeat();
    };
    return Experiment(
        {.estimator = std::make_shared<Estimator>(model_fn, RunConfig{.model_dir = model_dir, .task = std::move(task)}),
         .train_input_fn = input,
         .eval_input_fn = input,
         .eval_metrics = {},
         .train_steps = 30,
         .eval_steps = 1,
         .eval_delay_secs = 0,
         .wait = [](absl::Duration) { return true; }});
  }
  auto Maker() {
    return [this](const std::string& output_dir) { return Make(output_dir); };
  }
  template <typename Run>
  void ExpectRefused(Run run, const std::vector<std::string>& texts) {
    try {
      run();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), ExitCode::kUsage) << error.what();
      for (const std::string& text : texts) EXPECT_THAT(error.what(), HasSubstr(text));
    }
  }

  const ScratchFolder scratch_;
  const std::string model_dir_ = scratch_.path();
  int made_ = 0;
};

TEST_F(RunTest, RunsWhatTheTaskDoesOfItself) {
  const TrainAndEvaluateResults results = learn_runner::Run(Maker(), model_dir_);
  EXPECT_EQ(results.eval.at("global_step"), 30);
  EXPECT_LT(results.eval.at("loss"), 1e-3);
}

TEST_F(RunTest, RunsTheScheduleOfThatName) {
  EXPECT_TRUE(learn_runner::Run(Maker(), model_dir_ + "/", "train").eval.empty());
  EXPECT_EQ(learn_runner::Run(Maker(), model_dir_, "evaluate").eval.at("global_step"), 30);
  EXPECT_EQ(learn_runner::Run(Maker(), model_dir_, "continuous_eval").eval.at("global_step"), 30);
  EXPECT_EQ(learn_runner::Run(Maker(), model_dir_, "continuous_eval_on_train_data").eval.at("global_step"), 30);
  EXPECT_EQ(learn_runner::Run(Maker(), model_dir_, "train_and_evaluate").eval.at("global_step"), 30);
  EXPECT_EQ(learn_runner::Run(Maker(), model_dir_, "local_run").eval.at("global_step"), 30);
  EXPECT_EQ(learn_runner::Run(Maker(), model_dir_, "continuous_train_and_eval").eval.at("global_step"), 30);
  EXPECT_EQ(learn_runner::Run(Maker(), model_dir_, "test").eval.at("global_step"), 31);
  ExpectRefused([&] { learn_runner::Run(Maker(), model_dir_, "run_std_server"); }, {"worker:0 isn't a ps"});
}

TEST_F(RunTest, RefusesAScheduleThatThereIsNot) {
  ExpectRefused([&] { learn_runner::Run(Maker(), model_dir_, "train_and_evalute"); },
                {"\"train_and_evalute\"", "(nearest: train_and_evaluate)", "accepted: train, evaluate,"});
  EXPECT_EQ(made_, 0);
}

TEST_F(RunTest, RefusesAnOutputDirThatIsNotTheExperiments) {
  ExpectRefused([&] { learn_runner::Run(Maker(), ""); }, {"output_dir is empty"});
  const auto elsewhere = [this](const std::string&) { return Make(model_dir_); };
  ExpectRefused([&] { learn_runner::Run(elsewhere, model_dir_ + "/other"); },
                {model_dir_ + ", but", model_dir_ + "/other", "RunConfig::model_dir"});
}

}  // namespace
}  // namespace muster::learn_runner_test
