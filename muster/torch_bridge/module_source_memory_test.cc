#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "muster/torch_bridge/module_source.h"

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
  EXPECT_NE(source->ComputeGradients().value(), before) << "what changes there is what is trained with";
  const std::weak_ptr<std::vector<float>> kept = owner;
  owner.reset();
  source.reset();
  EXPECT_FALSE(kept.expired()) << "the module still points there";
  model.reset();
  EXPECT_TRUE(kept.expired());
}

}  // namespace
}  // namespace muster::module_source_memory_test
