#include "muster/torch_bridge/module/random_state.h"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include <string>

namespace muster::random_state_test {
namespace {

TEST(RandomStateTest, RestoringRepeatsTheDraws) {
  SeedTorch(7);
  torch::randn({3});  // leaves a spare normal number behind, which is part of the state
  const std::string state = TorchRandomState();
  const torch::Tensor uniform = torch::rand({5}), normal = torch::randn({3}), order = torch::randperm(10);

  SeedTorch(8);
  EXPECT_FALSE(torch::equal(torch::rand({5}), uniform));
  ASSERT_TRUE(SetTorchRandomState(state).ok());
  EXPECT_TRUE(torch::equal(torch::rand({5}), uniform));
  EXPECT_TRUE(torch::equal(torch::randn({3}), normal));
  EXPECT_TRUE(torch::equal(torch::randperm(10), order));
}

TEST(RandomStateTest, ReadingTheStateDrawsNothing) {
  SeedTorch(7);
  const torch::Tensor expected = torch::rand({5});
  SeedTorch(7);
  TorchRandomState();
  EXPECT_TRUE(torch::equal(torch::rand({5}), expected));
}

TEST(RandomStateTest, BadStateIsRefusedAndChangesNothing) {
  SeedTorch(7);
  const std::string before = TorchRandomState();
  for (const std::string& bad : {std::string(), std::string("short"), std::string(before.size(), '\xff')}) {
    const absl::Status status = SetTorchRandomState(bad);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad.size() << " bytes: " << status;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("random generator"));
    EXPECT_EQ(TorchRandomState(), before);
  }
}

TEST(RandomStateTest, SeedMakesTheSameWeightsAndStreamsDiffer) {
  const auto draw = [](uint64_t seed, uint64_t stream) {
    SeedTorch(seed, stream);
    return torch::nn::Linear(4, 3)->weight.detach().clone();
  };
  EXPECT_TRUE(torch::equal(draw(5, 0), draw(5, 0)));
  EXPECT_TRUE(torch::equal(draw(5, 2), draw(5, 2)));
  EXPECT_FALSE(torch::equal(draw(5, 0), draw(5, 1)));
  EXPECT_FALSE(torch::equal(draw(5, 1), draw(5, 2)));
  EXPECT_FALSE(torch::equal(draw(5, 2), draw(6, 1)));

  torch::manual_seed(5);
  const torch::Tensor plain = torch::nn::Linear(4, 3)->weight.detach().clone();
  EXPECT_TRUE(torch::equal(draw(5, 0), plain)) << "stream 0 is torch::manual_seed";
}

}  // namespace
}  // namespace muster::random_state_test
