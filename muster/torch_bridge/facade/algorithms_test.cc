#include "muster/torch_bridge/facade/algorithms.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "muster/algo/choice/algorithm_table.h"
#include "muster/optim/rule_options.h"
#include "muster/torch_bridge/module/random_state.h"

namespace muster::algorithms_test {
namespace {

constexpr int kMinibatches = 24;

torch::Tensor Loss(torch::nn::Linear& net, const torch::Tensor& x) {
  return torch::mse_loss(net(x), x.sum(1, /*keepdim=*/true));
}

std::vector<torch::Tensor> Minibatches() {
  torch::manual_seed(7);
  std::vector<torch::Tensor> minibatches;
  for (int i = 0; i < kMinibatches; ++i) minibatches.push_back(torch::rand({8, 4}));
  return minibatches;
}

torch::nn::Linear Net() {
  SeedTorch(3);
  return torch::nn::Linear(4, 1);
}

// Trains on all minibatches, in one process; returns the losses of the first and the last one.
std::pair<double, double> Train(torch::nn::Linear& net, const AlgorithmChoice& choice) {
  const auto minibatches = Minibatches();
  const auto server = Server::CreateLocal();
  Replica replica(*server, net);
  Trainer trainer = MakeTrainer(replica, choice);
  MonitoredTrainingSession session(*server, {});
  for (const torch::Tensor& minibatch : minibatches) session.Run(trainer, [&] { return Loss(net, minibatch); });
  session.Close();
  return {Loss(net, minibatches.front()).item<double>(), Loss(net, minibatches.back()).item<double>()};
}

// With one worker there is no staleness and nothing to average, and a window of plain steps is plain steps.
class AloneByNameTest : public ::testing::TestWithParam<AlgorithmChoice> {};

TEST_P(AloneByNameTest, IsTheSameAsTorchsSgd) {
  torch::nn::Linear ours = Net(), twin = Net();
  Train(ours, GetParam());
  torch::optim::SGD sgd(twin->parameters(), 0.1);
  for (const torch::Tensor& minibatch : Minibatches()) {
    sgd.zero_grad();
    Loss(twin, minibatch).backward();
    sgd.step();
  }
  EXPECT_TRUE(torch::allclose(ours->weight, twin->weight, 1e-5, 1e-6)) << ours->weight << twin->weight;
  EXPECT_TRUE(torch::allclose(ours->bias, twin->bias, 1e-5, 1e-6));
}

AlgorithmChoice Sgd(const std::string& name, const std::string& window = "", bool deterministic = false) {
  AlgorithmChoice choice{.name = name, .parameters = {{"learning_rate", "0.1"}}, .deterministic = deterministic};
  if (!window.empty()) choice.parameters["window"] = window;
  return choice;
}

INSTANTIATE_TEST_SUITE_P(Algorithms, AloneByNameTest,
                         ::testing::Values(Sgd("hogwild"), Sgd("hogwild", "", true), Sgd("ssp"), Sgd("synchronous"),
                                           Sgd("staleness_aware"), Sgd("downpour_easy", "5"), Sgd("dynsgd", "7"),
                                           Sgd("dynsgd", "7", true), Sgd("all_reduce")),
                         [](const auto& choice) {
                           return choice.param.name + (choice.param.deterministic ? "_deterministic" : "");
                         });

TEST(MakeTrainerTest, EveryAlgorithmOfTheTableTrains) {
  for (const AlgorithmInfo& info : AlgorithmTable()) {
    AlgorithmChoice choice{.name = std::string(info.name)};
    for (const ParameterInfo& parameter : info.parameters)
      if (parameter.name == "window") choice.parameters["window"] = "3";
    torch::nn::Linear net = Net();
    const double before = Loss(net, Minibatches().back()).item<double>();
    EXPECT_LT(Train(net, choice).second, before) << info.name;
  }
}

TEST(MakeTrainerTest, AMistakeIsAnErrorOfUsage) {
  const auto server = Server::CreateLocal();
  torch::nn::Linear net = Net();
  Replica replica(*server, net);
  try {
    MakeTrainer(replica, {.name = "dynsg"});
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(ExitCodeOf(error.status()), ExitCode::kUsage);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("dynsgd"));
  }
}

std::vector<torch::Tensor> ValuesAfterTraining(const AlgorithmChoice& choice, const OptimizerSpec& optimizer) {
  torch::nn::Linear net = Net();
  const auto server = Server::CreateLocal();
  Replica replica(*server, net);
  Trainer trainer = MakeTrainer(replica, choice, optimizer);
  MonitoredTrainingSession session(*server, {});
  for (const torch::Tensor& minibatch : Minibatches()) session.Run(trainer, [&] { return Loss(net, minibatch); });
  session.Close();
  return {net->weight.detach().clone(), net->bias.detach().clone()};
}

// Trains the weight by SGD at 0.1, the bias at 0.02.
std::vector<torch::Tensor> ValuesByTorch() {
  torch::nn::Linear net = Net();
  torch::optim::SGD weight(std::vector<torch::Tensor>{net->weight}, 0.1);
  torch::optim::SGD bias(std::vector<torch::Tensor>{net->bias}, 0.02);
  for (const torch::Tensor& minibatch : Minibatches()) {
    net->zero_grad();
    Loss(net, minibatch).backward();
    weight.step();
    bias.step();
  }
  return {net->weight.detach(), net->bias.detach()};
}

OptimizerSpec SlowerBias(double rate) {
  return {muster::Sgd({.learning_rate = rate}),
          {{.variables = {"bias"}, .rule = muster::Sgd({.learning_rate = 0.02})}}};
}

bool Near(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  return torch::allclose(a[0], b[0], 1e-5, 1e-6) && torch::allclose(a[1], b[1], 1e-5, 1e-6);
}

TEST(OwnOptimizerTest, IsTheServersRuleWhereWorkersHaveNone) {
  EXPECT_TRUE(Near(ValuesAfterTraining({.name = "hogwild"}, SlowerBias(0.1)), ValuesByTorch()));
  EXPECT_TRUE(Near(ValuesAfterTraining({.name = "all_reduce"}, SlowerBias(0.1)), ValuesByTorch()));
}

TEST(OwnOptimizerTest, IsTheWorkersRuleWhereThereIsOne) {
  const AlgorithmChoice choice{.name = "downpour_easy", .parameters = {{"window", "5"}}};
  EXPECT_TRUE(Near(ValuesAfterTraining(choice, SlowerBias(0.1)), ValuesByTorch()));
}

TEST(OwnOptimizerTest, ALearningRateOfTheChoiceTakesThePlaceOfItsOwn) {
  for (const char* name : {"hogwild", "downpour_easy"}) {
    const AlgorithmChoice choice{.name = name, .parameters = {{"learning_rate", "0.1"}}};
    EXPECT_TRUE(Near(ValuesAfterTraining(choice, SlowerBias(7)), ValuesByTorch())) << name;
  }
}

TEST(OwnOptimizerTest, ARuleOfTheChoiceComesBeforeIt) {
  const AlgorithmChoice choice{.name = "hogwild", .parameters = {{"server_rule", "sgd:learning_rate=0.1"}}};
  torch::nn::Linear net = Net();
  Train(net, choice);
  EXPECT_TRUE(Near(ValuesAfterTraining(choice, SlowerBias(7)), {net->weight, net->bias}));
}

// Text can't express a schedule: half the rate from the 13th minibatch on.
TEST(OwnOptimizerTest, KeepsItsSchedule) {
  torch::nn::Linear twin = Net();
  const auto minibatches = Minibatches();
  for (int i = 0; i < kMinibatches; ++i) {
    twin->zero_grad();
    Loss(twin, minibatches[i]).backward();
    torch::optim::SGD(twin->parameters(), i < 12 ? 0.1 : 0.05).step();
  }
  const ScheduleSpec schedule{.kind = ScheduleKind::kStep, .decay_steps = 12, .decay_rate = 0.5};
  for (const char* name : {"hogwild", "downpour_easy"}) {
    const auto values = ValuesAfterTraining({.name = name, .parameters = {{"window", "1"}}},
                                            muster::Sgd({.learning_rate = 0.1, .schedule = schedule}));
    EXPECT_TRUE(Near(values, {twin->weight, twin->bias})) << name;
  }
}

std::string MistakeOf(const AlgorithmChoice& choice, const OptimizerSpec& optimizer) {
  try {
    ValuesAfterTraining(choice, optimizer);
  } catch (const Error& error) {
    EXPECT_EQ(ExitCodeOf(error.status()), ExitCode::kUsage) << error.what();
    return error.what();
  }
  return "no error";
}

TEST(OwnOptimizerTest, WhatTheWorkersRuleCanNotBeIsSaid) {
  EXPECT_THAT(MistakeOf({.name = "aeamsgd"}, SlowerBias(0.1)), ::testing::HasSubstr("groups"));
  EXPECT_THAT(
      MistakeOf({.name = "downpour_easy"}, {muster::Sgd(), {{.variables = {"hidden.*"}, .rule = muster::Sgd()}}}),
      ::testing::HasSubstr("hidden.*"));
  EXPECT_THAT(MistakeOf({.name = "downpour_easy"}, {muster::Sgd(), {{.variables = {"bias"}, .rule = PlainAdd()}}}),
              ::testing::HasSubstr("climb"));
  EXPECT_THAT(MistakeOf({.name = "hogwild"}, muster::Sgd({.learning_rate = -1})),
              ::testing::HasSubstr("learning_rate"));
  EXPECT_THAT(MistakeOf({.name = "hogwil"}, muster::Sgd()), ::testing::HasSubstr("hogwild"));
}

}  // namespace
}  // namespace muster::algorithms_test
