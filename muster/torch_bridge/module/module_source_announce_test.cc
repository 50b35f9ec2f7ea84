// What AnnounceGradients promises: nothing reads an announced parameter, or an overwritable gradient, any more in that
// backward pass. The tests write NaN over each at once; the gradients must be, bit for bit, those of an untouched twin.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "muster/torch_bridge/module/module_source.h"

namespace muster::module_source_announce_test {
namespace {

namespace nn = torch::nn;
using testing::Contains;
using testing::IsSupersetOf;
using testing::Not;

struct Model : nn::Module {
  virtual torch::Tensor Loss(const torch::Tensor& input) = 0;
  torch::Tensor keep;  // what a user may hold from one minibatch to the next
};

struct Plain : Model {
  Plain() : first(register_module("first", nn::Linear(6, 6))), second(register_module("second", nn::Linear(6, 6))) {}
  torch::Tensor Loss(const torch::Tensor& input) override { return second(torch::tanh(first(input))).pow(2).sum(); }
  nn::Linear first;
  nn::Linear second;
};

// One layer used twice.
struct Twice final : Plain {
  torch::Tensor Loss(const torch::Tensor& input) override {
    return first(torch::tanh(second(torch::tanh(first(input))))).pow(2).sum();
  }
};

// The gradient of second.weight is final before its detached alias is read.
struct Detached final : Plain {
  torch::Tensor Loss(const torch::Tensor& input) override {
    return second(torch::tanh(first(input)).mm(second->weight.detach())).pow(2).sum();
  }
};

// The previous minibatch's loss, with its graph, is still held.
struct Keeping final : Plain {
  torch::Tensor Loss(const torch::Tensor& input) override {
    return keep = second(torch::tanh(first(input)).mm(second->weight.detach())).pow(2).sum();
  }
};

// Made once and read in every minibatch: no minibatch adds a reference to the storage.
struct Aliased final : Plain {
  torch::Tensor Loss(const torch::Tensor& input) override {
    if (!keep.defined()) keep = second->weight.detach();
    return second(torch::tanh(first(input)).mm(keep)).pow(2).sum();
  }
};

struct Unused final : Plain {
  Unused() : third(register_module("third", nn::Linear(6, 6))) {}
  nn::Linear third;
};

struct Tied final : Plain {
  Tied() { second->weight = second->register_parameter("tied", first->weight); }
  torch::Tensor Loss(const torch::Tensor& input) override {
    return torch::tanh(first(input)).mm(first->weight).pow(2).sum();
  }
};

struct Convolution final : Model {
  Convolution()
      : convolution(register_module("convolution", nn::Conv2d(nn::Conv2dOptions(1, 3, 3)))),
        norm(register_module("norm", nn::BatchNorm2d(3))),
        lstm(register_module("lstm", nn::LSTM(nn::LSTMOptions(12, 5).batch_first(true)))) {}
  torch::Tensor Loss(const torch::Tensor& input) override {
    const torch::Tensor seen = norm(convolution(input.reshape({-1, 1, 6, 6}))).flatten(2);
    return std::get<0>(lstm(seen.slice(2, 0, 12))).pow(2).sum();
  }
  nn::Conv2d convolution;
  nn::BatchNorm2d norm;
  nn::LSTM lstm;
};

// The gradients of three minibatches, and the parameters announced in all of them.
struct Run {
  std::vector<std::vector<std::byte>> gradients;
  std::set<std::string> announced;
};

template <typename T>
Run RunModel(bool overwrite) {
  torch::manual_seed(3);
  auto model = std::make_shared<T>();
  const std::vector<torch::Tensor> held = model->parameters();
  auto source = *ModuleSource::Create(model);
  Run run;
  std::set<std::string> now;
  if (overwrite)
    source->AnnounceGradients([&](size_t i) {
      now.insert(source->variables()[i].name);
      const MutableByteSpan value = source->value(i);
      auto* numbers = reinterpret_cast<float*>(value.data());
      std::fill(numbers, &numbers[value.size() / sizeof(float)], std::numeric_limits<float>::quiet_NaN());
    });
  for (int minibatch = 0; minibatch < 3; ++minibatch) {
    const torch::Tensor input = torch::rand({6, 36}).reshape({36, 6});
    source->SetLoss([&] { return model->Loss(input); });
    std::vector<std::vector<std::byte>> values;
    for (size_t i = 0; i < source->variables().size(); ++i)
      values.emplace_back(source->value(i).begin(), source->value(i).end());
    now.clear();
    EXPECT_TRUE(source->ComputeGradients().ok());
    for (size_t i = 0; i < source->variables().size(); ++i) {
      const ByteSpan gradient = source->gradient(i);
      run.gradients.emplace_back(gradient.begin(), gradient.end());
      if (source->variables()[i].kind == VariableKind::kTrainable)
        std::copy(values[i].begin(), values[i].end(), source->value(i).begin());
    }
    if (minibatch == 0) run.announced = now;
    std::erase_if(run.announced, [&](const std::string& name) { return !now.contains(name); });
  }
  return run;
}

template <typename T>
std::set<std::string> ExpectNobodyReadsWhatIsAnnounced() {
  const Run overwritten = RunModel<T>(true);
  EXPECT_EQ(overwritten.gradients, RunModel<T>(false).gradients);
  return overwritten.announced;
}

// Autograd gives both parameters views of one gradient, with the same elements.
struct Shared final : Model {
  Shared()
      : left(register_parameter("left", torch::ones({3, 6}))),
        right(register_parameter("right", torch::ones({6, 3}))) {}
  torch::Tensor Loss(const torch::Tensor& input) override {
    return (left.view({-1}) + right.view({-1})).mul(input.view({-1}).slice(0, 0, 18)).sum();
  }
  torch::Tensor left;
  torch::Tensor right;
};

struct Overwriting {
  std::map<std::string, std::vector<std::byte>> gradients;  // as they were announced, or found at the end
  std::set<std::string> overwritable;
};

// Overwrites each gradient with NaN as it is announced, if that is allowed.
template <typename T>
Overwriting RunOverwriting(bool overwrite) {
  torch::manual_seed(3);
  auto model = std::make_shared<T>();
  auto source = *ModuleSource::Create(model);
  Overwriting run;
  const auto take = [&](size_t i) {
    const std::string& name = source->variables()[i].name;
    const ByteSpan gradient = source->gradient(i);
    if (!run.gradients.try_emplace(name, gradient.begin(), gradient.end()).second) return;
    const MutableByteSpan memory = source->OverwritableGradient(i);
    if (memory.empty()) return;
    run.overwritable.insert(name);
    auto* numbers = reinterpret_cast<float*>(memory.data());
    if (overwrite) std::fill_n(numbers, memory.size() / sizeof(float), std::numeric_limits<float>::quiet_NaN());
  };
  source->AnnounceGradients(take);
  const torch::Tensor input = torch::rand({6, 36}).reshape({36, 6});
  source->SetLoss([&] { return model->Loss(input); });
  EXPECT_TRUE(source->ComputeGradients().ok());
  EXPECT_FALSE(run.gradients.empty());
  for (size_t i = 0; i < source->variables().size(); ++i) take(i);
  return run;
}

template <typename T>
std::set<std::string> ExpectNobodyReadsWhatMayBeOverwritten() {
  const Overwriting overwritten = RunOverwriting<T>(true);
  EXPECT_EQ(overwritten.gradients, RunOverwriting<T>(false).gradients);
  return overwritten.overwritable;
}

const std::vector<std::string> kAll = {"first.weight", "first.bias", "second.weight", "second.bias"};

TEST(ModuleSourceAnnounce, EveryParameterOfAPlainModel) {
  EXPECT_THAT(ExpectNobodyReadsWhatIsAnnounced<Plain>(), IsSupersetOf(kAll));
}

TEST(ModuleSourceAnnounce, AParameterThatIsUsedTwiceOnceItsGradientIsFinal) {
  EXPECT_THAT(ExpectNobodyReadsWhatIsAnnounced<Twice>(), IsSupersetOf(kAll));
}

TEST(ModuleSourceAnnounce, NotOneWhoseDetachedAliasIsStillToBeRead) {
  const std::set<std::string> announced = ExpectNobodyReadsWhatIsAnnounced<Detached>();
  EXPECT_THAT(announced, Not(Contains("second.weight")));
  EXPECT_THAT(announced, Contains("first.weight"));
}

TEST(ModuleSourceAnnounce, NorIfTheGraphOfTheLastMinibatchIsKept) {
  EXPECT_THAT(ExpectNobodyReadsWhatIsAnnounced<Keeping>(), Not(Contains("second.weight")));
}

TEST(ModuleSourceAnnounce, NorIfADetachedAliasOfEarlierMinibatchesIsReadAgain) {
  const std::set<std::string> announced = ExpectNobodyReadsWhatIsAnnounced<Aliased>();
  EXPECT_THAT(announced, Not(Contains("second.weight")));
  EXPECT_THAT(announced, Contains("first.weight"));
}

TEST(ModuleSourceAnnounce, NeitherUnusedNorTiedParameters) {
  const std::set<std::string> unused = ExpectNobodyReadsWhatIsAnnounced<Unused>();
  EXPECT_THAT(unused, IsSupersetOf(kAll));
  EXPECT_THAT(unused, Not(Contains("third.weight")));
  ExpectNobodyReadsWhatIsAnnounced<Tied>();
}

TEST(ModuleSourceAnnounce, AGradientMayBeOverwrittenAtOnce) {
  EXPECT_THAT(ExpectNobodyReadsWhatMayBeOverwritten<Plain>(), IsSupersetOf(kAll));
  EXPECT_THAT(ExpectNobodyReadsWhatMayBeOverwritten<Convolution>(), Contains("convolution.weight"));
  ExpectNobodyReadsWhatMayBeOverwritten<Twice>();
  ExpectNobodyReadsWhatMayBeOverwritten<Tied>();
  EXPECT_THAT(ExpectNobodyReadsWhatMayBeOverwritten<Shared>(), testing::IsEmpty());
}

struct Throwing : torch::autograd::Function<Throwing> {
  static torch::Tensor forward(torch::autograd::AutogradContext* /*context*/, const torch::Tensor& input) {
    return input.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* /*context*/,
                                                 const torch::autograd::variable_list& /*gradients*/) {
    throw std::runtime_error("no gradient here");
  }
};

struct Failing final : Plain {
  torch::Tensor Loss(const torch::Tensor& input) override {
    return second(Throwing::apply(torch::tanh(first(input)))).pow(2).sum();
  }
};

// A thread may be sending it.
TEST(ModuleSourceAnnounce, WhatWasAnnouncedStaysWhereItIsWhenTheBackwardPassFails) {
  auto model = std::make_shared<Failing>();
  auto source = *ModuleSource::Create(model);
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> announced;
  source->AnnounceGradients([&](size_t i) {
    c10::StorageImpl* const memory = source->tensor(i).grad().storage().unsafeGetStorageImpl();
    announced.emplace_back(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(memory));
  });
  source->SetLoss([&] { return model->Loss(torch::ones({36, 6})); });
  EXPECT_FALSE(source->ComputeGradients().ok());
  EXPECT_EQ(announced.size(), 2U);
  for (const auto& memory : announced) EXPECT_FALSE(memory.expired());
  for (size_t i = 0; i < source->variables().size(); ++i) EXPECT_TRUE(source->gradient(i).empty());
  EXPECT_FALSE(source->ComputeGradients().ok());
  EXPECT_TRUE(announced.front().expired());
}

// Between two minibatches the program may differentiate what it likes: what is announced is sent.
TEST(ModuleSourceAnnounce, NothingOfABackwardPassOfTheProgramsOwn) {
  auto model = std::make_shared<Plain>();
  auto source = *ModuleSource::Create(model);
  int announced = 0;
  const torch::Tensor input = torch::ones({36, 6});
  source->SetLoss([&] { return model->Loss(input); });
  source->SetGradientReady([&](size_t) { ++announced; });
  model->Loss(input).backward();
  EXPECT_EQ(announced, 0);
  ASSERT_TRUE(source->ComputeGradients().ok());
  EXPECT_EQ(announced, 4);
  source->AnnounceGradients([&](size_t) { ++announced; });
  ASSERT_TRUE(source->ComputeGradients().ok());
  const int of_minibatches = announced;
  model->Loss(input).backward();
  EXPECT_EQ(announced, of_minibatches);
}

TEST(ModuleSourceAnnounce, ConvolutionsNormsAndRecurrentLayers) {
  EXPECT_THAT(ExpectNobodyReadsWhatIsAnnounced<Convolution>(), Contains("convolution.weight"));
}

}  // namespace
}  // namespace muster::module_source_announce_test
