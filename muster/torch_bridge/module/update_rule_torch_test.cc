// Compares the update rules with the library whose semantics they keep: torch::optim, 100 steps of the same gradients.
#include <gtest/gtest.h>
#include <torch/optim.h>

#include "muster/optim/rule_options.h"
#include "muster/optim/update_rule.h"
#include "muster/torch_bridge/module/torch_dtype.h"

namespace muster::update_rule_torch_test {
namespace {

constexpr int64_t kElements = 1003;
using MakeOptimizer = std::unique_ptr<torch::optim::Optimizer> (*)(std::vector<torch::Tensor>);

MutableByteSpan Bytes(torch::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.data_ptr()), static_cast<size_t>(tensor.nbytes())};
}

void CompareWithTorch(const RuleSpec& spec, DType dtype, MakeOptimizer make_optimizer) {
  torch::manual_seed(1);
  const auto options = torch::TensorOptions().dtype(TorchDType(dtype));
  torch::Tensor theirs = torch::randn({kElements}, options);
  torch::Tensor ours = theirs.clone();
  theirs.set_requires_grad(true);
  const auto optimizer = make_optimizer({theirs});
  const auto rule = *MakeUpdateRule(spec);
  std::vector<torch::Tensor> slots;
  std::vector<MutableByteSpan> spans;
  for (const SlotSpec& slot : rule->slots())
    slots.push_back(
        torch::full({kElements}, slot.initial_value, torch::TensorOptions().dtype(TorchDType(SlotDType(dtype)))));
  for (torch::Tensor& slot : slots) spans.push_back(Bytes(slot));
  for (uint64_t t = 1; t <= 100; ++t) {
    torch::Tensor gradient = torch::randn({kElements}, options);
    theirs.mutable_grad() = gradient.clone();
    optimizer->step();
    rule->Apply(dtype, Bytes(ours), spans, Bytes(gradient), {.learning_rate = spec.learning_rate, .t = t});
  }
  const torch::Tensor error = (ours - theirs).abs() / theirs.abs().clamp_min(1);
  EXPECT_LE(error.max().item<double>(), 1e-6) << RuleName(spec.kind) << " " << DTypeName(dtype);
  EXPECT_GT((theirs - theirs.mean()).abs().max().item<double>(), 0.1) << "nothing was compared";
}

struct Case {
  std::string name;
  RuleSpec rule;
  MakeOptimizer optimizer;
};

template <typename Optimizer, typename Options>
std::unique_ptr<torch::optim::Optimizer> Make(std::vector<torch::Tensor> parameters, const Options& options) {
  return std::make_unique<Optimizer>(std::move(parameters), options);
}

std::vector<Case> Cases() {
  using torch::optim::AdagradOptions;
  using torch::optim::AdamOptions;
  using torch::optim::AdamWOptions;
  using torch::optim::RMSpropOptions;
  using torch::optim::SGDOptions;
  using Parameters = std::vector<torch::Tensor>;
  return {
      {"sgd", Sgd({.learning_rate = 0.05}),
       [](Parameters p) { return Make<torch::optim::SGD>(std::move(p), SGDOptions(0.05)); }},
      {"sgd_decay", Sgd({.learning_rate = 0.05, .weight_decay = 0.1}),
       [](Parameters p) { return Make<torch::optim::SGD>(std::move(p), SGDOptions(0.05).weight_decay(0.1)); }},
      {"momentum", muster::Momentum({.momentum = 0.8, .weight_decay = 0.01}),
       [](Parameters p) {
         return Make<torch::optim::SGD>(std::move(p), SGDOptions(0.01).momentum(0.8).weight_decay(0.01));
       }},
      {"nesterov", muster::Momentum({.nesterov = true}),
       [](Parameters p) {
         return Make<torch::optim::SGD>(std::move(p), SGDOptions(0.01).momentum(0.9).nesterov(true));
       }},
      {"adagrad", Adagrad(), [](Parameters p) { return Make<torch::optim::Adagrad>(std::move(p), AdagradOptions()); }},
      {"adagrad_all",
       Adagrad({.learning_rate = 0.1, .learning_rate_decay = 0.1, .weight_decay = 0.01, .initial_accumulator = 0.5}),
       [](Parameters p) {
         return Make<torch::optim::Adagrad>(
             std::move(p), AdagradOptions(0.1).lr_decay(0.1).weight_decay(0.01).initial_accumulator_value(0.5));
       }},
      {"adam", Adam(), [](Parameters p) { return Make<torch::optim::Adam>(std::move(p), AdamOptions()); }},
      {"adam_decay", Adam({.learning_rate = 0.01, .beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.1}),
       [](Parameters p) {
         return Make<torch::optim::Adam>(std::move(p), AdamOptions(0.01).betas({0.8, 0.95}).weight_decay(0.1));
       }},
      {"adamw", AdamW(), [](Parameters p) { return Make<torch::optim::AdamW>(std::move(p), AdamWOptions()); }},
      {"adamw_decay", AdamW({.learning_rate = 0.01, .weight_decay = 0.3}),
       [](Parameters p) { return Make<torch::optim::AdamW>(std::move(p), AdamWOptions(0.01).weight_decay(0.3)); }},
      {"rmsprop", RmsProp(), [](Parameters p) { return Make<torch::optim::RMSprop>(std::move(p), RMSpropOptions()); }},
      {"rmsprop_momentum", RmsProp({.learning_rate = 0.001, .weight_decay = 0.1, .momentum = 0.9}),
       [](Parameters p) {
         return Make<torch::optim::RMSprop>(std::move(p), RMSpropOptions(0.001).weight_decay(0.1).momentum(0.9));
       }},
      {"rmsprop_centered", RmsProp({.learning_rate = 0.001, .rho = 0.9, .centered = true}),
       [](Parameters p) {
         return Make<torch::optim::RMSprop>(std::move(p), RMSpropOptions(0.001).alpha(0.9).centered(true));
       }},
      {"rmsprop_all", RmsProp({.learning_rate = 0.001, .rho = 0.9, .momentum = 0.5, .centered = true}),
       [](Parameters p) {
         return Make<torch::optim::RMSprop>(std::move(p),
                                            RMSpropOptions(0.001).alpha(0.9).momentum(0.5).centered(true));
       }},
  };
}

class UpdateRuleTorchTest : public ::testing::TestWithParam<Case> {};

TEST_P(UpdateRuleTorchTest, EqualsTorchFor100Steps) {
  CompareWithTorch(GetParam().rule, DType::kFloat32, GetParam().optimizer);
  CompareWithTorch(GetParam().rule, DType::kFloat64, GetParam().optimizer);
}

INSTANTIATE_TEST_SUITE_P(All, UpdateRuleTorchTest, ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace muster::update_rule_torch_test
