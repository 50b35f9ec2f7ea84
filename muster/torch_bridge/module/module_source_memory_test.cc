#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "muster/torch_bridge/module/module_source.h"

namespace muster::module_source_memory_test {
namespace {

TEST(ModuleSourceMemory, TrainsInMemoryThatItIsGivenLater) {
  auto model = std::make_shared<torch::nn::LinearImpl>(3, 2);
  auto source = *ModuleSource::Create(model);
  const torch::Tensor input = torch::rand({5, 3});
  source->SetLoss([&] { return model->forward(input).sum(); });
  const double before = source->ComputeGradients().value();
  const ByteSpan old = source->value(0);
  auto owner = std::make_shared<std::vector<float>>(old.size() / sizeof(float));
  const MutableByteSpan memory = AsMutableBytes(owner->data(), owner->size());
  std::copy(old.begin(), old.end(), memory.begin());
  EXPECT_FALSE(source->UseMemory(0, memory.first(4), nullptr)) << "it is too short";
  ASSERT_TRUE(source->UseMemory(0, memory, owner));
  EXPECT_EQ(source->value(0).data(), memory.data());
  EXPECT_EQ(source->tensor(0).const_data_ptr(), memory.data());
  EXPECT_EQ(source->ComputeGradients().value(), before);
  EXPECT_FALSE(source->gradient(0).empty());
  for (float& value : *owner) value += 1;
  EXPECT_NE(source->ComputeGradients().value(), before) << "training uses what is written there";
  const std::weak_ptr<std::vector<float>> kept = owner;
  owner.reset();
  source.reset();
  EXPECT_FALSE(kept.expired()) << "the module still points there";
  model.reset();
  EXPECT_TRUE(kept.expired());
}

// Memory for the first variable of a source, filled with one number.
struct Memory {
  Memory(ModuleSource& source, float number)
      : owner(std::make_shared<std::vector<float>>(source.value(0).size() / sizeof(float), number)) {}
  MutableByteSpan bytes() const { return AsMutableBytes(owner->data(), owner->size()); }
  std::shared_ptr<std::vector<float>> owner;
};

const void* StorageOf(const ModuleSource& source) { return source.tensor(0).storage().unsafeGetStorageImpl(); }

TEST(ModuleSourceMemory, TwoThatAlternateAreViewedOnce) {
  auto model = std::make_shared<torch::nn::LinearImpl>(3, 2);
  auto source = *ModuleSource::Create(model);
  const Memory memory[2] = {{*source, 1}, {*source, 2}};
  const auto use = [&](int which) { return source->UseMemory(0, memory[which].bytes(), memory[which].owner); };
  for (const int which : {0, 1, 0}) ASSERT_TRUE(use(which));
  const void* views[2] = {StorageOf(*source), nullptr};
  ASSERT_TRUE(use(1));
  views[1] = StorageOf(*source);
  ASSERT_NE(views[0], views[1]);
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(use(i % 2));
    EXPECT_EQ(StorageOf(*source), views[i % 2]);
    EXPECT_EQ(source->value(0).data(), memory[i % 2].bytes().data());
    EXPECT_EQ(source->tensor(0).data_ptr<float>()[0], static_cast<float>(i % 2 + 1));
    ASSERT_TRUE(use(i % 2)) << "where it is already";
    EXPECT_EQ(StorageOf(*source), views[i % 2]);
  }
}

// As after a recovery: the memory of a ps that is gone must not be kept for ever.
TEST(ModuleSourceMemory, WhatIsLeftForGoodIsReleased) {
  auto model = std::make_shared<torch::nn::LinearImpl>(3, 2);
  auto source = *ModuleSource::Create(model);
  std::weak_ptr<std::vector<float>> last;
  for (int i = 0; i < 3; ++i) {
    const Memory next(*source, 1);
    ASSERT_TRUE(source->UseMemory(0, next.bytes(), next.owner));
    EXPECT_TRUE(last.expired()) << i;
    last = next.owner;
  }
  EXPECT_FALSE(last.expired());
}

TEST(ModuleSourceMemory, BothThatAlternatedAreReleasedForAThird) {
  auto model = std::make_shared<torch::nn::LinearImpl>(3, 2);
  auto source = *ModuleSource::Create(model);
  std::vector<Memory> two = {{*source, 1}, {*source, 2}};
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(source->UseMemory(0, two[i % 2].bytes(), two[i % 2].owner));
  const std::weak_ptr<std::vector<float>> first = two[0].owner, second = two[1].owner;
  two.clear();
  EXPECT_FALSE(second.expired()) << "the module points there";
  const Memory third(*source, 3);
  ASSERT_TRUE(source->UseMemory(0, third.bytes(), third.owner));
  EXPECT_TRUE(first.expired());
  EXPECT_TRUE(second.expired());
}

}  // namespace
}  // namespace muster::module_source_memory_test
