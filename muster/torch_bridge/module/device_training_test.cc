// Whole training with the module on another device than its values, by every algorithm of the table, alone and against
// a ps on the CPU; and the effect of a session's config on the device. The staged CPU stands for a GPU; on a host with
// a GPU, that is tested too.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/algo/choice/algorithm_table.h"
#include "muster/base/testing/free_addresses.h"
#include "muster/optim/rule_options.h"
#include "muster/torch_bridge/facade/algorithms.h"
#include "muster/torch_bridge/facade/training.h"
#include "muster/torch_bridge/module/random_state.h"
#include "muster/train/hooks/hooks.h"

namespace muster::device_training_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Staging = TensorSource::Staging;

constexpr int kSteps = 12;
constexpr ComputeDevice kGpu{true, 0};
constexpr ComputeDevice kNoSuchGpu{true, 63};

enum class Where { kCpu, kStagedCpu, kGpu };

struct NamedAlgorithm {
  std::string name;  // of the test
  bool on_ps;
  AlgorithmChoice choice;
};

// The whole table, with Adam on the ps if the workers have no rule of their own. Algorithms with a window are also
// trained with a window of three minibatches, because another class may handle a window of one.
std::vector<NamedAlgorithm> Algorithms() {
  std::vector<NamedAlgorithm> algorithms;
  for (const AlgorithmInfo& info : AlgorithmTable()) {
    const auto has = [&info](absl::string_view name) {
      return std::any_of(info.parameters.begin(), info.parameters.end(),
                         [name](const ParameterInfo& parameter) { return parameter.name == name; });
    };
    const std::string name(info.name);
    AlgorithmChoice choice{.name = name};
    if (!has("worker_rule")) choice.parameters["server_rule"] = "adam:learning_rate=0.01";
    if (has("window")) choice.parameters["window"] = "1";
    algorithms.push_back({name, info.needs_ps, choice});
    if (!has("window")) continue;
    choice.parameters["window"] = "3";
    algorithms.push_back({name + "_window_3", info.needs_ps, choice});
    if (!has("fetch_window")) continue;
    choice.parameters["fetch_window"] = "2";
    algorithms.push_back({name + "_window_3_fetched_after_2", info.needs_ps, choice});
  }
  return algorithms;
}

// Trains alone, or as the only worker of a ps that applies the updates. Returns the loss of each step, then what the
// module shows at the end.
std::vector<torch::Tensor> Train(Server& server, const NamedAlgorithm& algorithm, Where where) {
  SeedTorch(3);
  // A bias before batch norm would have gradients of nothing but rounding, which adaptive rules turn into whole steps.
  torch::nn::Sequential net(torch::nn::Linear(torch::nn::LinearOptions(4, 8).bias(false)), torch::nn::BatchNorm1d(8),
                            torch::nn::ReLU(), torch::nn::Linear(8, 1));
  Replica replica(server, net);
  Trainer trainer = MakeTrainer(replica, algorithm.choice);
  std::vector<torch::Tensor> seen;
  {
    MonitoredTrainingSession session(server, {}, {StopAtStep({.last_step = kSteps})});
    if (where == Where::kStagedCpu) {
      EXPECT_EQ(replica.source().ComputeOn(torch::kCPU, Staging::kAlways), absl::OkStatus());
    }
    EXPECT_EQ(replica.device().is_cuda(), where == Where::kGpu);
    SeedTorch(7);
    while (!session.ShouldStop())
      session.Run(trainer, [&] {
        const torch::Tensor inputs = torch::rand({8, 4});
        const torch::Tensor loss = torch::mse_loss(net->forward(inputs.to(replica.device())),
                                                   inputs.sum(1, /*keepdim=*/true).to(replica.device()));
        seen.push_back(loss.detach().cpu().clone());
        return loss;
      });
  }
  for (const torch::Tensor& parameter : net->parameters()) seen.push_back(parameter.detach().cpu().clone());
  for (const torch::Tensor& buffer : net->buffers()) seen.push_back(buffer.detach().cpu().clone());
  return seen;
}

NodeOptions OptionsFor(Where where) {
  NodeOptions options;
  if (where == Where::kGpu) options.device = kGpu;
  return options;
}

std::vector<torch::Tensor> TrainAlone(const NamedAlgorithm& algorithm, Where where) {
  Server server(TaskConfig(), OptionsFor(where));
  return Train(server, algorithm, where);
}

std::vector<torch::Tensor> TrainAgainstPs(const NamedAlgorithm& algorithm, Where where) {
  const ClusterSpec cluster = *ClusterSpec::FromLists({{"ps", FreeAddresses(1)}, {"worker", {"127.0.0.1:1"}}});
  // A ps ignores what it is told about devices.
  Server ps(cluster, "ps", 0, {.apply = ApplyChoice::kServer, .device = kNoSuchGpu});
  std::thread serving([&] { EXPECT_EQ(ps.Join(), 0); });
  std::vector<torch::Tensor> seen;
  {
    NodeOptions options = OptionsFor(where);
    options.apply = ApplyChoice::kServer;
    Server worker(cluster, "worker", 0, options);
    seen = Train(worker, algorithm, where);
  }
  serving.join();
  return seen;
}

class DeviceTrainingTest : public ::testing::TestWithParam<NamedAlgorithm> {
 protected:
  static void ExpectClose(const std::vector<torch::Tensor>& found, const std::vector<torch::Tensor>& expected,
                          bool to_the_bit) {
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      if (to_the_bit)
        EXPECT_TRUE(torch::equal(found[i], expected[i])) << i;
      else
        EXPECT_TRUE(torch::allclose(found[i].to(torch::kDouble), expected[i].to(torch::kDouble), 1e-2, 1e-3)) << i;
    }
  }
};

TEST_P(DeviceTrainingTest, AloneItIsTrainingOnTheCpuToTheBit) {
  ExpectClose(TrainAlone(GetParam(), Where::kStagedCpu), TrainAlone(GetParam(), Where::kCpu), /*to_the_bit=*/true);
}

TEST_P(DeviceTrainingTest, AgainstAPsItIsTrainingOnTheCpuToTheBit) {
  if (!GetParam().on_ps) GTEST_SKIP() << GetParam().name << " has no ps";
  ExpectClose(TrainAgainstPs(GetParam(), Where::kStagedCpu), TrainAgainstPs(GetParam(), Where::kCpu),
              /*to_the_bit=*/true);
}

TEST_P(DeviceTrainingTest, OnAGpuItIsTrainingOnTheCpu) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "there is no GPU, or this libtorch is built without CUDA";
  ExpectClose(TrainAlone(GetParam(), Where::kGpu), TrainAlone(GetParam(), Where::kCpu), /*to_the_bit=*/false);
  if (GetParam().on_ps)
    ExpectClose(TrainAgainstPs(GetParam(), Where::kGpu), TrainAgainstPs(GetParam(), Where::kCpu),
                /*to_the_bit=*/false);
}

INSTANTIATE_TEST_SUITE_P(Algorithms, DeviceTrainingTest, ::testing::ValuesIn(Algorithms()),
                         [](const auto& info) { return info.param.name; });

// The program that docs/devices.md shows.
TEST(DevicesPageTest, TheProgramTrains) {
  const TaskConfig task;
  // [program]
  Server server(task);
  torch::nn::Linear net(4, 1);
  Replica replica(server, net);
  Trainer trainer = Asynchronous(replica, Adam());
  SessionOptions options;
  options.config.allow_soft_placement = true;
  options.config.log_device_placement = true;
  MonitoredTrainingSession session(server, options, {StopAtStep({.last_step = 100})});
  while (!session.ShouldStop())
    session.Run(trainer, [&] {
      const torch::Tensor inputs = torch::rand({8, 4}).to(replica.device());
      return torch::mse_loss(net(inputs), inputs.sum(1, /*keepdim=*/true));
    });
  // [/program]
  EXPECT_EQ(session.global_step(), 100);
}

// A server that is asked for a device that no host has.
class NoSuchDeviceTest : public ::testing::Test {
 protected:
  std::unique_ptr<MonitoredTrainingSession> NewSession(const SessionConfig& config) {
    return std::make_unique<MonitoredTrainingSession>(server_, SessionOptions{.config = config});
  }

  Server server_{TaskConfig(), {.device = kNoSuchGpu}};
  torch::nn::Linear net_{4, 1};
  Replica replica_{server_, net_};
  Trainer trainer_ = Asynchronous(replica_, Sgd());
};

TEST_F(NoSuchDeviceTest, WithoutSoftPlacementTheErrorNamesWhatThereIs) {
  try {
    NewSession({});
    FAIL() << "a session on cuda:63";
  } catch (const Error& error) {
    EXPECT_TRUE(absl::IsNotFound(error.status()));
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("no device cuda:63"), HasSubstr("there is: cpu"), HasSubstr("allow_soft_placement")));
  }
}

TEST_F(NoSuchDeviceTest, SoftPlacementTakesTheCpuSaysSoOnceAndTrains) {
  testing::internal::CaptureStderr();
  {
    const auto session = NewSession({.allow_soft_placement = true, .log_device_placement = true});
    for (int i = 0; i < 3; ++i) session->Run(trainer_, [&] { return net_(torch::rand({2, 4})).mean(); });
    EXPECT_EQ(session->global_step(), 3);
  }
  const std::string log = testing::internal::GetCapturedStderr();
  const size_t said = log.find("computing on the CPU instead");
  ASSERT_NE(said, std::string::npos) << log;
  EXPECT_EQ(log.find("computing on the CPU instead", said + 1), std::string::npos) << log;
  EXPECT_THAT(log, AllOf(HasSubstr("/job:worker/replica:0/task:0/device:CPU:0"), Not(HasSubstr("GPU:63"))));
  EXPECT_TRUE(replica_.device().is_cpu());
  EXPECT_EQ(server_.Devices(), (std::vector<std::string>{"/job:worker/replica:0/task:0/device:CPU:0"}));
}

TEST(SessionThreadsTest, AreThoseOfTheConfig) {
  const int before = at::get_num_threads();
  const auto server = Server::CreateLocal();
  torch::nn::Linear net(4, 1);
  Replica replica(*server, net);
  auto trainer = Asynchronous(replica, Sgd());
  {
    const MonitoredTrainingSession session(*server, {.config = {.intra_op_parallelism_threads = 3}});
    EXPECT_EQ(at::get_num_threads(), 3);
  }
  at::set_num_threads(before);
}

// libtorch lets the threads be set only once.
TEST(SessionThreadsTest, WhatCanNotBeHadAnyMoreIsSaid) {
  const int asked = at::get_num_interop_threads() + 1;
  testing::internal::CaptureStderr();
  for (int more = 0; more < 2; ++more) {
    const auto server = Server::CreateLocal();
    torch::nn::Linear net(4, 1);
    Replica replica(*server, net);
    auto trainer = Asynchronous(replica, Sgd());
    const MonitoredTrainingSession session(*server, {.config = {.inter_op_parallelism_threads = asked + more}});
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr(absl::StrCat("inter_op_parallelism_threads stays ", at::get_num_interop_threads(),
                                     " instead of ", asked + 1)));
}

}  // namespace
}  // namespace muster::device_training_test
