#include "muster/torch_bridge/facade/local_variables.h"

#include <gmock/gmock.h>

#include <memory>
#include <vector>

#include "muster/torch_bridge/module/embedding.h"
#include "muster/torch_bridge/module/random_state.h"
#include "muster/train/hooks/hooks.h"

namespace muster::local_variables_test {
namespace {

torch::Tensor Loss(torch::nn::Linear& net, const torch::Tensor& x) {
  return torch::mse_loss(net(x), x.sum(1, /*keepdim=*/true));
}

std::vector<torch::Tensor> Minibatches(int count) {
  torch::manual_seed(7);
  std::vector<torch::Tensor> minibatches;
  for (int i = 0; i < count; ++i) minibatches.push_back(torch::rand({8, 4}));
  return minibatches;
}

torch::nn::Linear Net() {
  SeedTorch(3);
  return torch::nn::Linear(4, 1);
}

// Alone, pushing the difference of local steps gives the same as the local steps.
TEST(TorchLocalVariablesTest, DifferencesOfAnOptimizerOfTorchsAreItsSteps) {
  torch::nn::Linear ours = Net();
  torch::nn::Linear twin = Net();
  const auto minibatches = Minibatches(12);
  const auto server = Server::CreateLocal();
  Replica replica(*server, ours);
  LocalVariables local(replica);
  torch::optim::Adam optimizer(ours->parameters(), 0.01);
  {
    MonitoredTrainingSession session(*server, {}, {StopAtStep({.last_step = 4})});
    for (size_t next = 0; !session.ShouldStop();) {
      session.Run(local, [&] {
        local.PullGlobal();
        torch::Tensor loss;
        for (int i = 0; i < 3; ++i) {
          optimizer.zero_grad();
          loss = Loss(ours, minibatches[next++]);
          loss.backward();
          optimizer.step();
        }
        const LocalPush push = local.PushDelta({.minibatches = 3});
        EXPECT_EQ(push.global_step, static_cast<int64_t>(next) / 3);
        EXPECT_EQ(push.staleness, 0u);
        return loss;
      });
    }
    EXPECT_EQ(session.global_step(), 4);
  }
  torch::optim::Adam twins(twin->parameters(), 0.01);
  for (const torch::Tensor& minibatch : minibatches) {
    twins.zero_grad();
    Loss(twin, minibatch).backward();
    twins.step();
  }
  EXPECT_TRUE(torch::allclose(local.Global("weight"), twin->weight, 1e-5, 1e-6));
  EXPECT_TRUE(torch::allclose(local.Global("bias"), twin->bias, 1e-5, 1e-6));
}

// As on a GPU: the module's tensors have memory of their own, which the optimizer changes.
TEST(TorchLocalVariablesTest, AModuleThatIsStagedPushesWhatItsOwnTensorsBecame) {
  torch::nn::Linear ours = Net();
  const auto server = Server::CreateLocal();
  Replica replica(*server, ours);
  LocalVariables local(replica);
  MonitoredTrainingSession session(*server, {});
  ASSERT_EQ(replica.source().ComputeOn(torch::kCPU, TensorSource::Staging::kAlways), absl::OkStatus());
  session.Run(local, [&] {
    local.PullGlobal();
    const torch::NoGradGuard no_grad;
    ours->weight.add_(2);
    local.PushDelta();
    EXPECT_TRUE(torch::allclose(local.Global("weight"), ours->weight));
    ours->weight.zero_();
    local.AssignGlobalToLocal();
    EXPECT_TRUE(torch::allclose(local.Global("weight"), ours->weight)) << "and get what is assigned";
    EXPECT_GT(ours->weight.abs().sum().item<double>(), 1);
    return torch::zeros({});
  });
}

// The session copies values to the device between two runs.
TEST(TorchLocalVariablesTest, WhatAStagedModuleWasTrainedOutlivesTheRun) {
  torch::nn::Linear ours = Net();
  const auto server = Server::CreateLocal();
  Replica replica(*server, ours);
  LocalVariables local(replica);
  MonitoredTrainingSession session(*server, {});
  ASSERT_EQ(replica.source().ComputeOn(torch::kCPU, TensorSource::Staging::kAlways), absl::OkStatus());
  session.Run(local, [&] { return local.PullGlobal(), torch::zeros({}); });
  const torch::Tensor trained = ours->weight.detach() + 2;
  session.Run(local, [&] {
    const torch::NoGradGuard no_grad;
    ours->weight.add_(2);
    return torch::zeros({});
  });
  EXPECT_TRUE(torch::equal(ours->weight, trained));
  session.Run(local, [&] { return local.PushDelta(), torch::zeros({}); });
  EXPECT_TRUE(torch::allclose(local.Global("weight"), trained));
}

TEST(TorchLocalVariablesTest, GradientsThatTheProgramComputedAreAppliedByThePs) {
  torch::nn::Linear ours = Net();
  torch::nn::Linear twin = Net();
  const auto minibatches = Minibatches(6);
  const auto server = Server::CreateLocal();
  Replica replica(*server, ours);
  LocalVariables local(replica, {.rule = Sgd({.learning_rate = 0.1})});
  {
    MonitoredTrainingSession session(*server, {}, {StopAtStep({.last_step = 3})});
    for (size_t next = 0; !session.ShouldStop();)
      session.Run(local, [&] {
        local.PullGlobal();
        torch::Tensor loss;
        for (int i = 0; i < 2; ++i) {
          ours->zero_grad();
          loss = Loss(ours, minibatches[next++]);
          loss.backward();
          local.AccumulateGradients();
        }
        local.PushGradients({.scale = 0.5, .minibatches = 2});
        return loss;
      });
  }
  torch::optim::SGD twins(twin->parameters(), 0.1);
  for (size_t i = 0; i < minibatches.size(); i += 2) {
    twins.zero_grad();
    (0.5 * (Loss(twin, minibatches[i]) + Loss(twin, minibatches[i + 1]))).backward();
    twins.step();
  }
  EXPECT_TRUE(torch::allclose(local.Global("weight"), twin->weight, 1e-5, 1e-6));
}

TEST(TorchLocalVariablesTest, WhatIsWrongIsThrownAsTheErrorThatItWas) {
  torch::nn::Linear net = Net();
  const auto server = Server::CreateLocal();
  Replica replica(*server, net);
  LocalVariables local(replica);
  EXPECT_THROW(local.Global("weight"), Error) << "no session yet";
  MonitoredTrainingSession session(*server, {});
  EXPECT_THROW(local.PullGlobal(), Error) << "outside a run";
  try {
    session.Run(local, [&] {
      local.PushDelta();
      return torch::zeros({});
    });
    FAIL() << "there is nothing to take the difference from";
  } catch (const Error& error) {
    EXPECT_EQ(error.status().code(), absl::StatusCode::kFailedPrecondition);
  }
  EXPECT_THROW(local.Global("wieght"), Error);
}

struct TableNet : torch::nn::Module {
  Embedding words{register_module("words", Embedding({.rows = 10, .dimension = 4}))};
};

TEST(TorchLocalVariablesTest, AModelWithATableOfRowsIsRefused) {
  const auto server = Server::CreateLocal();
  const auto net = std::make_shared<TableNet>();
  Replica replica(*server, net);
  try {
    LocalVariables local(replica);
    FAIL() << "a table has no local copy";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("'words.weight' is a table of rows"));
  }
}

// Also on a device with memory of its own, where the program trains a copy.
TEST(TorchLocalVariablesTest, AFetchShowsTheGlobalOnesAndGivesTheLocalOnesBack) {
  for (const auto staging : {TensorSource::Staging::kUnlessCpu, TensorSource::Staging::kAlways}) {
    torch::nn::Linear net = Net();
    const torch::Tensor first = net->weight.detach().clone();
    const auto server = Server::CreateLocal();
    Replica replica(*server, net);
    LocalVariables local(replica);
    MonitoredTrainingSession session(*server, {});
    ThrowIfError(replica.source().ComputeOn(torch::kCPU, staging));
    const auto add = [&net] {
      const torch::NoGradGuard no_grad;
      net->weight.add_(1);
    };
    add();
    session.Fetch([&] { EXPECT_TRUE(torch::equal(net->weight, first)); });
    EXPECT_TRUE(torch::equal(net->weight, first + 1));
    session.Run(local, [&] { return local.PullGlobal(), add(), local.PushDelta(), net->weight.sum(); });
    add();
    session.Fetch([&] { EXPECT_TRUE(torch::allclose(net->weight, first + 1)); });
    EXPECT_TRUE(torch::equal(net->weight, first + 1 + 1));
    EXPECT_EQ(session.global_step(), 1);
  }
}

}  // namespace
}  // namespace muster::local_variables_test
