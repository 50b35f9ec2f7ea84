#include "muster/torch_bridge/facade/training.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "muster/base/testing/scratch_folder.h"
#include "muster/cluster/identity/compute_threads.h"
#include "muster/optim/rule_options.h"
#include "muster/torch_bridge/module/random_state.h"
#include "muster/train/hooks/hooks.h"
#include "muster/transport/tcp/tcp_transport.h"

namespace muster::training_test {
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

// One step stale: each minibatch is computed with the values before the newest.
TEST(PipelinedTrainerTest, OneProcessIsGradientDescentWithADelayOfOne) {
  SeedTorch(3);
  torch::nn::Linear ours(4, 1);
  SeedTorch(3);
  torch::nn::Linear newest(4, 1);
  SeedTorch(3);
  torch::nn::Linear seen(4, 1);
  const auto minibatches = Minibatches(20);
  const auto server = Server::CreateLocal();
  Replica replica(*server, ours);
  Trainer trainer = Pipelined(replica, Sgd({.learning_rate = 0.1}));
  {
    MonitoredTrainingSession session(*server, {}, {StopAtStep({.last_step = 20})});
    for (int i = 0; !session.ShouldStop(); ++i) session.Run(trainer, [&] { return Loss(ours, minibatches[i]); });
    EXPECT_EQ(session.global_step(), 20);
  }
  for (const torch::Tensor& minibatch : minibatches) {
    seen->zero_grad();
    Loss(seen, minibatch).backward();
    const torch::NoGradGuard no_grad;
    for (size_t i = 0; i < newest->parameters().size(); ++i) {
      const torch::Tensor before = newest->parameters()[i].clone();
      newest->parameters()[i].sub_(seen->parameters()[i].grad(), 0.1);
      seen->parameters()[i].copy_(before);
    }
  }
  // When the session has closed, the values are the newest.
  EXPECT_TRUE(torch::allclose(ours->weight, newest->weight, 1e-5, 1e-6));
  EXPECT_TRUE(torch::allclose(ours->bias, newest->bias, 1e-5, 1e-6));
}

TEST(ServerThreadsTest, TorchComputesWithTheTasksShareOfTheHostsCores) {
  const int before = at::get_num_threads();
  unsetenv("OMP_NUM_THREADS");
  const int cores = ProcessorsOfJob({})->count;
  const auto threads_of = [cores](int workers, int asked) {
    at::set_num_threads(cores + 1);  // not a number that any share gives
    std::vector<std::string> addresses;
    for (int i = 1; i <= workers; ++i) addresses.push_back("127.0.0.1:" + std::to_string(i));
    const Server server(*ClusterSpec::FromLists({{"worker", addresses}}), "worker", 0, {.threads = asked});
    return at::get_num_threads();
  };
  EXPECT_EQ(threads_of(2, 0), std::max(1, cores / 2));
  EXPECT_EQ(threads_of(cores + 1, 0), 1);
  EXPECT_EQ(threads_of(2, cores + 2), cores + 2) << "the program insists on it";
  {
    const auto alone = Server::CreateLocal();
    EXPECT_EQ(at::get_num_threads(), cores);
  }
  setenv("OMP_NUM_THREADS", "1", 1);
  EXPECT_EQ(threads_of(1, 0), 1) << "the user insists on it";
  EXPECT_EQ(threads_of(1, 3), 3);
  unsetenv("OMP_NUM_THREADS");
  at::set_num_threads(before);
}

TEST(AllReduceOptionsTest, TheProcessorsAreThoseThatTheUserGivesTheJob) {
  auto server = Server::CreateLocal();
  setenv("MUSTER_PROCESSORS", "1", 1);
  EXPECT_EQ(AllReduceOptionsOf(*server, {}).processors, 1);
  EXPECT_EQ(AllReduceOptionsOf(*server, {.processors = 7}).processors, 7) << "the program insists on it";
  unsetenv("MUSTER_PROCESSORS");
  EXPECT_EQ(AllReduceOptionsOf(*server, {}).processors, ProcessorsOfJob({})->count);
}

// With one worker, every way to combine workers is plain training.
class AloneTest : public ::testing::TestWithParam<std::function<Trainer(Replica&, const OptimizerSpec&)>> {};

TEST_P(AloneTest, OneProcessIsTheSameAsTorchsOptimizer) {
  SeedTorch(3);
  torch::nn::Linear ours(4, 1);
  SeedTorch(3);
  torch::nn::Linear twin(4, 1);
  const auto minibatches = Minibatches(20);

  const auto server = Server::CreateLocal();
  EXPECT_EQ(server->Target(), "");
  EXPECT_EQ(server->Devices(), (std::vector<std::string>{"/job:worker/replica:0/task:0/device:CPU:0"}));
  Replica replica(*server, ours);
  auto trainer = GetParam()(replica, Sgd({.learning_rate = 0.1}));
  {
    MonitoredTrainingSession session(*server, {.master = server->Target()}, {StopAtStep({.last_step = 20})});
    for (int i = 0; !session.ShouldStop(); ++i) session.Run(trainer, [&] { return Loss(ours, minibatches[i]); });
    EXPECT_EQ(session.global_step(), 20);
    EXPECT_THROW(session.Run(trainer, [&] { return Loss(ours, minibatches[0]); }), Error);
  }
  torch::optim::SGD optimizer(twin->parameters(), 0.1);
  for (const torch::Tensor& minibatch : minibatches) {
    optimizer.zero_grad();
    Loss(twin, minibatch).backward();
    optimizer.step();
  }
  // Not to the last bit: torch rounds parameter - rate × gradient once, our rules after each operation.
  EXPECT_TRUE(torch::allclose(ours->weight, twin->weight, 1e-6, 1e-7));
  EXPECT_TRUE(torch::allclose(ours->bias, twin->bias, 1e-6, 1e-7));
}

INSTANTIATE_TEST_SUITE_P(
    Trainers, AloneTest,
    ::testing::Values(
        [](Replica& replica, const OptimizerSpec& optimizer) { return Asynchronous(replica, optimizer); },
        [](Replica& replica, const OptimizerSpec& optimizer) { return Synchronous(replica, optimizer, {}); },
        [](Replica& replica, const OptimizerSpec& optimizer) { return BoundedStaleness(replica, optimizer, 0); }));

// As a front of another language makes it: a list of tensors instead of a module.
TEST(ReplicaTest, OfNamedTensorsTrainsAsOneOfTheirModule) {
  const auto minibatches = Minibatches(20);
  SeedTorch(3);
  torch::nn::Linear module(4, 1);
  const torch::Tensor weight = module->weight.detach().clone().requires_grad_();
  const torch::Tensor bias = module->bias.detach().clone().requires_grad_();
  const auto train = [&](Server& server, Replica& replica, const std::function<torch::Tensor(int)>& loss) {
    Trainer trainer = Asynchronous(replica, Adam({.learning_rate = 0.01}));
    MonitoredTrainingSession session(server, {}, {StopAtStep({.last_step = 20})});
    for (int i = 0; !session.ShouldStop(); ++i) session.Run(trainer, [&] { return loss(i); });
  };
  {
    const auto server = Server::CreateLocal();
    Replica replica(*server, module);
    train(*server, replica, [&](int i) { return Loss(module, minibatches[i]); });
  }
  const auto server = Server::CreateLocal();
  Replica replica(*server, TensorSource::Create({.parameters = {{"weight", weight}, {"bias", bias}}}).value());
  train(*server, replica, [&](int i) {
    const torch::Tensor& x = minibatches[i];
    return torch::mse_loss(torch::nn::functional::linear(x, weight, bias), x.sum(1, /*keepdim=*/true));
  });
  EXPECT_TRUE(torch::equal(weight, module->weight));
  EXPECT_TRUE(torch::equal(bias, module->bias));
}

// Dropout and torch::rand continue where the checkpoint left them, without any code in the program.
TEST(TrainingTest, CheckpointsKeepTorchsRandomGenerator) {
  const ScratchFolder scratch;
  // Draws one minibatch per step; saves at `steps`, the last.
  const auto draws = [&](uint64_t seed, int64_t steps) {
    SeedTorch(seed);
    const auto server = Server::CreateLocal();
    torch::nn::Linear net(4, 1);
    Replica replica(*server, net);
    auto trainer = Asynchronous(replica, Sgd());
    std::vector<torch::Tensor> drawn;
    MonitoredTrainingSession session(*server, {.checkpoint_dir = scratch.path()}, {StopAtStep({.last_step = steps})});
    while (!session.ShouldStop())
      session.Run(trainer, [&] {
        drawn.push_back(torch::rand({8, 4}));
        return Loss(net, drawn.back());
      });
    session.Close();
    return drawn;
  };
  const auto first = draws(/*seed=*/5, 3);
  const auto second = draws(/*seed=*/6, 7);
  ASSERT_EQ(first.size(), 3u);
  ASSERT_EQ(second.size(), 4u);
  SeedTorch(5);
  torch::nn::Linear same_draws_for_weights(4, 1);
  for (const auto& drawn : {first, second})
    for (const torch::Tensor& minibatch : drawn) EXPECT_TRUE(torch::equal(minibatch, torch::rand({8, 4})));
}

// Weights, Adam's moments, dropout's draws: training after a checkpoint is as if it had never stopped.
TEST(TrainingTest, ARestoredRunIsTheUninterruptedOneToTheBit) {
  // Trains in `directory` up to step `last`, from the checkpoint there if there is one. Returns the parameters then.
  const auto train = [](const std::string& directory, uint64_t seed, int64_t last) {
    SeedTorch(seed);
    const auto server = Server::CreateLocal();
    torch::nn::Sequential net(torch::nn::Linear(4, 16), torch::nn::Dropout(0.5), torch::nn::ReLU(),
                              torch::nn::Linear(16, 1));
    Replica replica(*server, net);
    auto trainer = Asynchronous(replica, Adam({.learning_rate = 0.01}));
    MonitoredTrainingSession session(*server, {.checkpoint_dir = directory}, {StopAtStep({.last_step = last})});
    while (!session.ShouldStop())
      session.Run(trainer, [&] {
        const torch::Tensor inputs = torch::rand({8, 4});
        return torch::mse_loss(net->forward(inputs), inputs.sum(1, /*keepdim=*/true));
      });
    session.Close();
    std::vector<torch::Tensor> parameters;
    for (const torch::Tensor& parameter : net->parameters()) parameters.push_back(parameter.detach().clone());
    return parameters;
  };
  std::vector<std::vector<torch::Tensor>> ends;
  for (const std::vector<int64_t>& lives : {std::vector<int64_t>{20}, {8, 9, 20}}) {
    const ScratchFolder scratch;
    // Each life begins with a seed of its own, which matters in the first only.
    uint64_t seed = 5;
    std::vector<torch::Tensor> parameters;
    for (const int64_t last : lives) parameters = train(scratch.path(), seed++, last);
    ends.push_back(parameters);
  }
  ASSERT_EQ(ends[0].size(), 4u);
  for (size_t i = 0; i < ends[0].size(); ++i) EXPECT_TRUE(torch::equal(ends[0][i], ends[1][i])) << "parameter " << i;
}

TEST(TrainingTest, WhatIsMissingIsSaid) {
  const auto server = Server::CreateLocal();
  torch::nn::Linear net(4, 1);
  EXPECT_THROW(MonitoredTrainingSession(*server, {}), Error);  // no trainer yet
  Replica replica(*server, net);
  auto trainer = Asynchronous(replica, Sgd());
  EXPECT_THROW(MonitoredTrainingSession(*server, {.master = "muster://elsewhere:1"}), Error);
}

TEST(TrainingTest, TheUsersExceptionComesBackAsAnError) {
  const auto server = Server::CreateLocal();
  torch::nn::Linear net(4, 1);
  Replica replica(*server, net);
  auto trainer = Asynchronous(replica, Sgd());
  MonitoredTrainingSession session(*server, {});
  EXPECT_THROW(session.Run(trainer, []() -> torch::Tensor { throw std::runtime_error("no more data"); }), Error);
}

TEST(TrainingTest, AClusterOfTwoServersInOneProcess) {
  const auto make_cluster = [](const std::string& ps) {
    return *ClusterSpec::FromLists({{"ps", {ps}}, {"worker", {"127.0.0.1:1"}}});
  };
  // A free port for the ps, taken from a short-lived listener.
  TcpEventLoop loop;
  std::string address;
  {
    StoreService nobody(loop,
                        {.files = &PosixFileSystem(), .background = [](absl::AnyInvocable<void()> task) { task(); }});
    TcpTransport transport(loop);
    address = (*transport.Listen("127.0.0.1:0", nobody))->address();
  }
  Server ps(make_cluster(address), "ps");  // its job has one task
  EXPECT_EQ(ps.Target(), "muster://" + address);
  EXPECT_THAT(ps.ServerDef(), ::testing::StartsWith("task ps:0\n"));
  EXPECT_THAT(ps.ServerDef(), ::testing::HasSubstr("* ps:0  " + address + "\n"));
  int exit_code = -1;
  std::thread serving([&] { exit_code = ps.Join(); });
  {
    Server worker(make_cluster(address), "worker", 0);
    torch::nn::Linear net(4, 1);
    Replica replica(worker, net);
    auto trainer = Asynchronous(replica, Momentum());
    MonitoredTrainingSession session(worker, {}, {StopAtStep({.num_steps = 5})});
    while (!session.ShouldStop()) session.Run(trainer, [&] { return Loss(net, torch::rand({2, 4})); });
    EXPECT_EQ(session.global_step(), 5);
  }
  serving.join();
  EXPECT_EQ(exit_code, 0);
}

}  // namespace
}  // namespace muster::training_test
