// A module that computes elsewhere than where its values are. The CPU with separate memory for the module's tensors
// stands for the GPU: the copies are the same, apart from the device's name. The reference is the same module unstaged,
// bit by bit; on a host with a GPU, the tests run there too, within its rounding.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include <cstring>
#include <vector>

#include "muster/torch_bridge/module/module_source.h"
#include "muster/torch_bridge/module/random_state.h"

namespace muster::module_staging_test {
namespace {

namespace nn = torch::nn;
using testing::HasSubstr;
using Staging = ModuleSource::Staging;

// Convolution, batch norm (float and int64 buffers), a frozen layer and two tensors tied to one memory.
struct Net final : nn::Module {
  Net()
      : convolution(register_module("convolution", nn::Conv2d(nn::Conv2dOptions(1, 4, 3)))),
        norm(register_module("norm", nn::BatchNorm2d(4))),
        frozen(register_module("frozen", nn::Linear(4 * 6 * 6, 5))),
        output(register_module("output", nn::Linear(5, 5))),
        tied(register_module("tied", nn::Linear(5, 5))) {
    for (torch::Tensor& parameter : frozen->parameters()) parameter.requires_grad_(false);
    tied->weight.set_data(output->weight);
  }
  torch::Tensor Loss(const torch::Tensor& input) {
    const torch::Tensor hidden = frozen(torch::relu(norm(convolution(input))).flatten(1));
    return tied(torch::tanh(output(hidden))).square().mean();
  }
  nn::Conv2d convolution;
  nn::BatchNorm2d norm;
  nn::Linear frozen;
  nn::Linear output;
  nn::Linear tied;
};

struct Replicated {
  Replicated() {
    SeedTorch(3);
    net = std::make_shared<Net>();
    source = *ModuleSource::Create(net);
  }
  // Makes one step of gradient descent on the values that the layers below see, as a ps would.
  void Step(const torch::Tensor& input) {
    source->SetLoss([&] { return net->Loss(input.to(source->device())); });
    const auto computed = source->ComputeGradients().value();
    loss = computed;
    for (size_t i = 0; i < source->variables().size(); ++i) {
      const ByteSpan gradient = source->gradient(i);
      if (gradient.empty()) continue;
      const MutableByteSpan value = source->value(i);
      ASSERT_EQ(gradient.size(), value.size());
      auto* to = reinterpret_cast<float*>(value.data());
      const auto* from = reinterpret_cast<const float*>(gradient.data());
      for (size_t j = 0; j < value.size() / sizeof(float); ++j) to[j] -= 0.125F * from[j];
    }
  }
  std::shared_ptr<Net> net;
  std::unique_ptr<ModuleSource> source;
  double loss = 0;
};

void ExpectSameBytes(ModuleSource& one, ModuleSource& other) {
  ASSERT_EQ(one.variables(), other.variables());
  for (size_t i = 0; i < one.variables().size(); ++i) {
    const MutableByteSpan a = one.value(i);
    const MutableByteSpan b = other.value(i);
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size()), 0) << one.variables()[i].name;
  }
}

torch::Tensor Input(int step) {
  SeedTorch(100 + step);
  return torch::rand({8, 1, 8, 8});
}

TEST(ModuleStagingTest, TrainsAsTheModuleWithoutStagingToTheBit) {
  Replicated plain;
  Replicated staged;
  ASSERT_EQ(staged.source->ComputeOn(torch::kCPU, Staging::kAlways), absl::OkStatus());
  ExpectSameBytes(*plain.source, *staged.source);
  for (int step = 0; step < 6; ++step) {
    plain.Step(Input(step));
    staged.Step(Input(step));
    EXPECT_EQ(staged.loss, plain.loss);
    // This includes batch norm's statistics, which the minibatch has changed on the device.
    ExpectSameBytes(*plain.source, *staged.source);
  }
}

TEST(ModuleStagingTest, TheModulesTensorsHaveMemoryOfTheirOwn) {
  Replicated staged;
  const std::vector<VariableSpec> variables = staged.source->variables();
  ASSERT_EQ(staged.source->ComputeOn(torch::kCPU, Staging::kAlways), absl::OkStatus());
  for (size_t i = 0; i < variables.size(); ++i) {
    EXPECT_NE(staged.source->tensor(i).const_data_ptr(), staged.source->value(i).data()) << variables[i].name;
    EXPECT_EQ(std::memcmp(staged.source->tensor(i).const_data_ptr(), staged.source->value(i).data(),
                          staged.source->value(i).size()),
              0);
  }
  // Tied tensors still share one memory there.
  EXPECT_EQ(staged.net->tied->weight.const_data_ptr(), staged.net->output->weight.const_data_ptr());
  // Back on the CPU, nothing is staged any more.
  ASSERT_EQ(staged.source->ComputeOn(torch::kCPU), absl::OkStatus());
  for (size_t i = 0; i < variables.size(); ++i)
    EXPECT_EQ(staged.source->tensor(i).const_data_ptr(), staged.source->value(i).data()) << variables[i].name;
}

TEST(ModuleStagingTest, PulledValuesAreSeenByTheNextMinibatchAndByWhoIsShownThem) {
  Replicated staged;
  ASSERT_EQ(staged.source->ComputeOn(torch::kCPU, Staging::kAlways), absl::OkStatus());
  const MutableByteSpan weight = staged.source->value(0);  // convolution.weight
  std::memset(weight.data(), 0, weight.size());
  EXPECT_FALSE(staged.net->convolution->weight.eq(0).all().item<bool>()) << "it is a copy";
  ASSERT_EQ(staged.source->ShowValues(), absl::OkStatus());
  EXPECT_TRUE(staged.net->convolution->weight.eq(0).all().item<bool>());

  auto* first = reinterpret_cast<float*>(weight.data());
  first[0] = 7;
  float seen = 0;
  staged.source->SetLoss([&] {
    seen = staged.net->convolution->weight.flatten()[0].item<float>();
    return staged.net->Loss(Input(0));
  });
  ASSERT_TRUE(staged.source->ComputeGradients().ok());
  EXPECT_EQ(seen, 7);
}

TEST(ModuleStagingTest, MemoryIsMovedUnderIt) {
  Replicated plain;
  Replicated staged;
  ASSERT_EQ(staged.source->ComputeOn(torch::kCPU, Staging::kAlways), absl::OkStatus());
  // As direct apply and the pipelined algorithm do.
  for (size_t i = 0; i < staged.source->variables().size(); ++i) {
    const MutableByteSpan now = staged.source->value(i);
    auto memory = std::make_shared<std::vector<std::byte>>(now.begin(), now.end());
    ASSERT_TRUE(staged.source->UseMemory(i, *memory, memory));
    EXPECT_EQ(staged.source->value(i).data(), memory->data());
  }
  for (int step = 0; step < 3; ++step) {
    plain.Step(Input(step));
    staged.Step(Input(step));
  }
  ExpectSameBytes(*plain.source, *staged.source);
}

TEST(ModuleStagingTest, GradientsThatAreKeptOutliveTheNextMinibatch) {
  Replicated staged;
  ASSERT_EQ(staged.source->ComputeOn(torch::kCPU, Staging::kAlways), absl::OkStatus());
  staged.Step(Input(0));
  ASSERT_TRUE(staged.source->KeepGradients());
  const ByteSpan kept = staged.source->gradient(0);
  const std::vector<std::byte> before(kept.begin(), kept.end());
  staged.Step(Input(1));
  EXPECT_EQ(std::memcmp(kept.data(), before.data(), before.size()), 0);
  EXPECT_NE(std::memcmp(staged.source->gradient(0).data(), before.data(), before.size()), 0);
}

TEST(ModuleStagingTest, NoGradientIsAnnouncedBeforeTheMinibatchIsOver) {
  for (const bool announced_first : {true, false}) {
    Replicated staged;
    int announced = 0;
    const auto announce = [&] { staged.source->AnnounceGradients([&](size_t) { ++announced; }); };
    if (announced_first) announce();
    ASSERT_EQ(staged.source->ComputeOn(torch::kCPU, Staging::kAlways), absl::OkStatus());
    if (!announced_first) announce();
    staged.Step(Input(0));
    EXPECT_EQ(announced, 0);
    EXPECT_FALSE(staged.source->gradient(0).empty());
  }
}

TEST(ModuleStagingTest, WhatIsLoadedIntoTheModuleIsTakenOver) {
  Replicated staged;
  ASSERT_EQ(staged.source->ComputeOn(torch::kCPU, Staging::kAlways), absl::OkStatus());
  staged.net->convolution->weight.set_data(torch::full_like(staged.net->convolution->weight, 5));  // as torch::load
  const MutableByteSpan value = staged.source->value(0);
  EXPECT_EQ(*reinterpret_cast<const float*>(value.data()), 5);
  ASSERT_EQ(staged.source->ShowValues(), absl::OkStatus());
  EXPECT_TRUE(staged.net->convolution->weight.eq(5).all().item<bool>());
}

TEST(ModuleStagingTest, ADeviceThatIsNotThereLeavesTheModuleAsItWas) {
  Replicated replicated;
  const absl::Status status = replicated.source->ComputeOn(torch::Device(torch::kCUDA, 63));
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("moving the module to cuda:63"));
  EXPECT_TRUE(replicated.source->device().is_cpu());
  replicated.Step(Input(0));
  EXPECT_EQ(replicated.source->tensor(0).const_data_ptr(), replicated.source->value(0).data());
}

TEST(ModuleOnGpuTest, TrainsAsOnTheCpu) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "there is no GPU, or this libtorch is built without CUDA";
  Replicated plain;
  Replicated on_gpu;
  ASSERT_EQ(on_gpu.source->ComputeOn(torch::Device(torch::kCUDA, 0)), absl::OkStatus());
  EXPECT_TRUE(on_gpu.net->convolution->weight.is_cuda());
  for (int step = 0; step < 6; ++step) {
    plain.Step(Input(step));
    on_gpu.Step(Input(step));
    EXPECT_NEAR(on_gpu.loss, plain.loss, 1e-4);
  }
  for (size_t i = 0; i < plain.source->variables().size(); ++i) {
    const torch::Tensor expected = plain.source->tensor(i).detach().to(torch::kDouble);
    ASSERT_EQ(on_gpu.source->ShowValues(), absl::OkStatus());
    const torch::Tensor found = on_gpu.source->tensor(i).detach().to(torch::kCPU, torch::kDouble);
    EXPECT_TRUE(torch::allclose(found, expected, 1e-2, 1e-3)) << plain.source->variables()[i].name;
  }
}

}  // namespace
}  // namespace muster::module_staging_test
