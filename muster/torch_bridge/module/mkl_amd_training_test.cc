// The same training with the processor switch of mkl_amd on and off: different kernels, the same losses. Off is
// `never`, so that the kernels differ on an Intel processor, too.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "muster/optim/rule_options.h"
#include "muster/torch_bridge/facade/training.h"
#include "muster/train/hooks/hooks.h"

namespace muster::mkl_amd_training_test {
namespace {

constexpr int kSteps = 30;

// The other test runs this one in processes of its own, because MKL asks only once.
TEST(MklAmdTrainingTest, PrintsItsLosses) {
  const auto server = Server::CreateLocal();
  torch::set_num_threads(1);
  torch::manual_seed(1);
  torch::nn::Sequential net(torch::nn::Linear(784, 100), torch::nn::ReLU(), torch::nn::Linear(100, 10));
  const torch::Tensor images = torch::rand({100, 784});
  const torch::Tensor labels = torch::randint(10, {100}, torch::kInt64);
  Replica replica(*server, net);
  Trainer trainer = Asynchronous(replica, Sgd({.learning_rate = 0.1}));
  MonitoredTrainingSession session(*server, {}, {StopAtStep({.last_step = kSteps})});
  while (!session.ShouldStop())
    session.Run(trainer, [&] {
      const torch::Tensor loss = torch::nn::functional::cross_entropy(net->forward(images), labels);
      std::printf("loss %.9g\n", loss.item<double>());
      return loss;
    });
}

std::vector<double> Losses(const char* switched) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string command =
      absl::StrCat("MUSTER_MKL_AMD=", switched, " '", self, "' --gtest_filter='*PrintsItsLosses'");
  std::vector<double> losses;
  std::FILE* const out = popen(command.c_str(), "r");
  if (out == nullptr) return losses;
  char line[256];
  while (std::fgets(line, sizeof line, out) != nullptr)
    if (absl::string_view text = line; absl::ConsumePrefix(&text, "loss "))
      losses.push_back(std::strtod(text.data(), nullptr));
  EXPECT_EQ(pclose(out), 0) << command;
  return losses;
}

TEST(MklAmdTrainingTest, TheSwitchChangesNoLoss) {
  const std::vector<double> off = Losses("never");
  const std::vector<double> on = Losses("1");
  ASSERT_EQ(off.size(), kSteps);
  ASSERT_EQ(on.size(), kSteps);
  EXPECT_LT(on.back(), on.front() - 0.1) << "it has learned";
  for (int i = 0; i < kSteps; ++i) EXPECT_NEAR(on[i], off[i], 1e-5) << "step " << i;
#if defined(__x86_64__)
  // Without AVX2 there is nothing to switch.
  if (__builtin_cpu_supports("avx2")) {
    EXPECT_NE(on, off) << "both have computed with the same kernels";
  }
#endif
}

}  // namespace
}  // namespace muster::mkl_amd_training_test
