// Sources of named tensors, as any front hands them over: which variables they make, what a front's facts do, and what
// is no loss. module_source_test.cc trains whole modules.
#include "muster/torch_bridge/module/tensor_source.h"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "muster/torch_bridge/module/embedding.h"
#include "muster/torch_bridge/module/torch_version.h"

namespace muster::tensor_source_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

torch::Tensor Parameter(at::IntArrayRef shape) { return torch::rand(shape, torch::requires_grad()); }

std::unique_ptr<TensorSource> MakeSource(ModelTensors model) { return TensorSource::Create(std::move(model)).value(); }

std::vector<float> Floats(ByteSpan bytes) {
  std::vector<float> numbers(bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

// A linear layer without a module.
struct Layer {
  torch::Tensor operator()(const torch::Tensor& input) const { return torch::linear(input, weight, bias); }
  ModelTensors Tensors() const { return {.parameters = {{"weight", weight}, {"bias", bias}}}; }

  torch::Tensor weight = Parameter({2, 3});
  torch::Tensor bias = Parameter({2});
};

// The rate is a power of two, so that fused and separate multiply-adds round alike.
TEST(TensorSourceTest, TrainsAsTorchDoesToTheBit) {
  Layer layer;
  Layer twin;
  {
    const torch::NoGradGuard no_grad;
    twin.weight.copy_(layer.weight);
    twin.bias.copy_(layer.bias);
  }
  torch::Tensor calls = torch::zeros({}, torch::kInt64);
  ModelTensors model = layer.Tensors();
  model.buffers = {{"calls", calls}};
  const auto source = MakeSource(std::move(model));
  torch::optim::SGD sgd(std::vector{twin.weight, twin.bias}, torch::optim::SGDOptions(0.125));
  for (int step = 0; step < 5; ++step) {
    const torch::Tensor input = torch::rand({4, 3});
    source->SetLoss([&] {
      calls += 1;
      return layer(input).pow(2).sum();
    });
    const double loss = source->ComputeGradients().value();
    sgd.zero_grad();
    const torch::Tensor expected = twin(input).pow(2).sum();
    expected.backward();
    sgd.step();
    EXPECT_EQ(loss, expected.item<double>()) << "step " << step;
    for (const size_t i : {0, 1}) {
      auto* value = reinterpret_cast<float*>(source->value(i).data());
      for (const float gradient : Floats(source->gradient(i))) *value++ -= 0.125F * gradient;
    }
  }
  EXPECT_TRUE(torch::equal(layer.weight, twin.weight));
  EXPECT_TRUE(torch::equal(layer.bias, twin.bias));
  int64_t counted = 0;
  ASSERT_EQ(source->value(2).size(), sizeof(counted));
  std::memcpy(&counted, source->value(2).data(), sizeof(counted));
  EXPECT_EQ(counted, 5);
  EXPECT_TRUE(source->gradient(2).empty());
}

TEST(TensorSourceVariables, FurtherNamesOfATensorAreAliases) {
  const torch::Tensor one = Parameter({2});
  const torch::Tensor other = Parameter({2});
  torch::Tensor same_memory = Parameter({2});
  same_memory.set_data(other);
  ModelTensors model;
  model.parameters = {{"a", one}, {"b", other}, {"c", one}, {"d", same_memory}};
  model.buffers = {{"e", torch::zeros({1})}, {"f", one}};
  const auto source = MakeSource(std::move(model));
  constexpr auto kTrainable = VariableKind::kTrainable, kBuffer = VariableKind::kBuffer;
  EXPECT_THAT(source->variables(), ElementsAre(VariableSpec{"a", DType::kFloat32, {2}, kTrainable, ""},
                                               VariableSpec{"b", DType::kFloat32, {2}, kTrainable, ""},
                                               VariableSpec{"e", DType::kFloat32, {1}, kBuffer, ""}));
  EXPECT_THAT(source->aliases(0), ElementsAre("c", "f"));
  EXPECT_THAT(source->aliases(1), ElementsAre("d"));
  EXPECT_THAT(source->aliases(2), ElementsAre());
  source->SetLoss([&] { return 3 * one.sum() + other.sum() + 2 * same_memory.sum(); });
  ASSERT_TRUE(source->ComputeGradients().ok());
  EXPECT_THAT(Floats(source->gradient(0)), ElementsAre(3, 3));
  EXPECT_THAT(Floats(source->gradient(1)), ElementsAre(3, 3));
}

TEST(TensorSourceVariables, ATableOfSeveralPathsIsOneVariable) {
  const auto words = std::make_shared<EmbeddingImpl>(EmbeddingOptions{.rows = 4, .dimension = 2});
  const auto tags = std::make_shared<EmbeddingImpl>(EmbeddingOptions{.rows = 3, .dimension = 1});
  const auto source = MakeSource(
      {.parameters = {{"bias", Parameter({1})}}, .tables = {{"words", words}, {"again", words}, {"tags", tags}}});
  ASSERT_EQ(source->variables().size(), 3);
  EXPECT_EQ(source->variables()[1].name, "words.weight");
  EXPECT_EQ(source->variables()[2].name, "tags.weight");
  source->LookUpThrough([](size_t variable, const RowsOut& rows) {
    EXPECT_EQ(variable, 2);
    std::memset(rows.values.data(), 0, rows.values.size());
    return absl::OkStatus();
  });
  source->SetLoss([&] { return tags->forward(torch::tensor({2, 2}, torch::kInt64)).sum(); });
  ASSERT_TRUE(source->ComputeGradients().ok());
  ASSERT_EQ(source->row_gradients().size(), 1);
  EXPECT_EQ(source->row_gradients()[0].variable, 2);
  const RowsIn rows = source->row_gradients()[0].rows;
  EXPECT_THAT(std::vector<int64_t>(rows.indices.begin(), rows.indices.end()), ElementsAre(2));
  EXPECT_THAT(Floats(rows.values), ElementsAre(2));
}

void ExpectRefused(ModelTensors model, const std::vector<std::string>& mentioned) {
  const auto source = TensorSource::Create(std::move(model));
  EXPECT_EQ(source.status().code(), absl::StatusCode::kInvalidArgument) << source.status();
  for (const std::string& text : mentioned) EXPECT_THAT(std::string(source.status().message()), HasSubstr(text));
}

void ExpectRefused(const torch::Tensor& first, const torch::Tensor& second, const std::vector<std::string>& mentioned) {
  ExpectRefused({.parameters = {{"p0", first}, {"p1", second}}}, mentioned);
}

TEST(TensorSourceVariables, PartlySharedMemoryIsAnErrorNamingBoth) {
  const torch::Tensor base = torch::rand({10});
  ExpectRefused(base.narrow(0, 0, 6), base.narrow(0, 4, 6), {"'p0' (shape [6])", "'p1' (shape [6])", "clone()"});
  ExpectRefused(base.narrow(0, 4, 6), base.narrow(0, 0, 6), {"'p0'", "'p1'"});
  ExpectRefused(base.narrow(0, 2, 3), base.narrow(0, 0, 10), {"'p0'", "'p1'"});
  ExpectRefused(base.view({2, 5}), base.view({5, 2}), {"'p0' (shape [2,5])", "'p1' (shape [5,2])"});
  const torch::Tensor square = torch::rand({3, 3});
  ExpectRefused(square.detach(), square.t(), {"'p0'", "'p1'"});
  const auto halves = MakeSource({.parameters = {{"p0", base.narrow(0, 0, 5)}, {"p1", base.narrow(0, 5, 5)}}});
  EXPECT_EQ(halves->variables().size(), 2);
}

TEST(TensorSourceVariables, WhatCannotBeAVariableIsNamed) {
  ExpectRefused(torch::rand({2}), torch::zeros({2}, torch::kComplexFloat), {"'p1'", "ComplexFloat", "float32"});
  ExpectRefused(torch::zeros({2}, torch::kMeta), torch::rand({2}), {"'p0'", "meta"});
  ExpectRefused(torch::zeros({2, 2}).to_sparse(), torch::rand({2}), {"'p0'", "sparse"});
  ExpectRefused(torch::rand({2}), Parameter({2}) * 2, {"'p1'", "the result of an operation"});
}

TEST(TensorSourceVariables, ATensorThatIsNotMadeYetIsRefusedAndTheOthersLeftAlone) {
  const Layer layer;
  const void* before = layer.weight.const_data_ptr();
  ModelTensors model = layer.Tensors();
  model.parameters.push_back({"lazy.weight", torch::Tensor()});
  ExpectRefused(model, {"'lazy.weight' isn't made yet"});
  model.parameters.pop_back();
  model.buffers = {{"lazy.mean", torch::Tensor()}};
  ExpectRefused(model, {"'lazy.mean' isn't made yet"});
  EXPECT_EQ(layer.weight.const_data_ptr(), before);
}

TEST(TensorSourceVariables, ANameThatIsThereTwiceIsRefused) {
  ExpectRefused({.parameters = {{"a", torch::rand({2})}}, .buffers = {{"a", torch::rand({2})}}}, {"two", "'a'"});
  const torch::Tensor same = torch::rand({2});
  ExpectRefused({.parameters = {{"a", same}, {"a", same}}}, {"two", "'a'"});
}

TEST(TensorSourceVariables, EmptyAndScalarVariables) {
  const torch::Tensor empty = Parameter({0, 3});
  const torch::Tensor scalar = torch::tensor(2.5F, torch::requires_grad());
  const auto source = MakeSource({.parameters = {{"empty", empty}, {"scalar", scalar}, {"none", Parameter({0})}}});
  ASSERT_EQ(source->variables().size(), 3);
  EXPECT_EQ(source->value(0).size(), 0);
  EXPECT_THAT(Floats(source->value(1)), ElementsAre(2.5F));
  source->SetLoss([&] { return scalar * 3 + empty.sum(); });
  EXPECT_EQ(source->ComputeGradients().value(), 7.5);
  EXPECT_THAT(Floats(source->gradient(1)), ElementsAre(3));
}

// The names of the parameters that one minibatch announces.
std::vector<std::string> Announced(TensorSource& source, std::function<torch::Tensor()> loss) {
  std::vector<std::string> names;
  source.AnnounceGradients([&](size_t i) { names.push_back(source.variables()[i].name); });
  source.SetLoss(std::move(loss));
  EXPECT_TRUE(source.ComputeGradients().ok());
  source.AnnounceGradients({});
  return names;
}

TEST(TensorSourceFront, MayKeepValuesUntilTheBackwardPassHasEnded) {
  const torch::Tensor input = torch::ones({4, 3});
  for (const bool keep : {false, true}) {
    const Layer layer;
    ModelTensors model = layer.Tensors();
    model.keep_values_in_backward = keep;
    const auto source = MakeSource(std::move(model));
    const auto loss = [&] { return layer(input).sum(); };
    EXPECT_EQ(Announced(*source, loss).size(), keep ? 0 : 2);
    EXPECT_THAT(Floats(source->gradient(1)), ElementsAre(4, 4));
    // A gradient that is final may be read all the same.
    int ready = 0;
    source->SetGradientReady([&](size_t) { ++ready; });
    ASSERT_TRUE(source->ComputeGradients().ok());
    EXPECT_EQ(ready, 2);
  }
}

TEST(TensorSourceFront, LeavesTheProgramsHooksIfItAnnouncesNothing) {
  const Layer layer;
  const auto loss = [&] { return layer(torch::ones({4, 3})).sum(); };
  int calls = 0;
  SetGradientReadyHook(layer.weight, [&] { ++calls; });
  ModelTensors model = layer.Tensors();
  model.keep_values_in_backward = true;
  auto source = MakeSource(std::move(model));
  EXPECT_THAT(Announced(*source, loss), ElementsAre());
  EXPECT_EQ(calls, 1);
  source.reset();
  loss().backward();
  EXPECT_EQ(calls, 2);
}

// References that no count of torch's shows, as those of a language whose holders of a tensor have one between them.
TEST(TensorSourceFront, CountsReferencesThatTorchDoesNotSee) {
  const Layer layer;
  const torch::Tensor input = torch::ones({4, 3});
  std::map<const void*, TensorReferences> unseen;
  ModelTensors model = layer.Tensors();
  model.count_references = [&](const torch::Tensor& tensor) {
    const TensorReferences more = unseen[tensor.unsafeGetTensorImpl()];
    return TensorReferences{tensor.use_count() + more.tensor, tensor.storage().use_count() + more.storage};
  };
  const auto source = MakeSource(std::move(model));
  const auto holding = [&](const torch::Tensor& tensor, TensorReferences more) {
    return [&, more, held = tensor.unsafeGetTensorImpl()] {
      unseen[held] = more;
      return layer(input).sum();
    };
  };
  EXPECT_THAT(Announced(*source, holding(layer.weight, {})), UnorderedElementsAre("weight", "bias"));
  EXPECT_THAT(Announced(*source, holding(layer.weight, {.tensor = 1})), ElementsAre("bias"));
  EXPECT_THAT(Announced(*source, holding(layer.weight, {.tensor = 1})), UnorderedElementsAre("weight", "bias"))
      << "it was there before the forward pass";
  EXPECT_THAT(Announced(*source, holding(layer.weight, {.tensor = 2})), ElementsAre("bias"));
  EXPECT_THAT(Announced(*source, holding(layer.bias, {.storage = 1})), ElementsAre("weight"));
}

class TensorSourceLoss : public testing::Test {
 protected:
  absl::Status StatusOf(std::function<torch::Tensor()> loss) {
    source_->SetLoss(std::move(loss));
    return source_->ComputeGradients().status();
  }
  // Makes gradients of an earlier minibatch, to see that an error clears them.
  void ComputeOnce() {
    ASSERT_TRUE(StatusOf([this] { return layer_(input_).sum(); }).ok());
  }
  void ExpectNoGradients() {
    for (size_t i = 0; i < source_->variables().size(); ++i) EXPECT_TRUE(source_->gradient(i).empty());
  }

  const Layer layer_;
  torch::Tensor input_ = torch::ones({4, 3});
  std::unique_ptr<TensorSource> source_ = MakeSource(layer_.Tensors());
};

TEST_F(TensorSourceLoss, WhatTheFunctionThrowsBecomesAStatus) {
  ComputeOnce();
  absl::Status status = StatusOf([]() -> torch::Tensor { throw std::runtime_error("no more data in part 7"); });
  EXPECT_EQ(status.code(), absl::StatusCode::kUnknown);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no more data in part 7"));
  ExpectNoGradients();

  status = StatusOf([this] { return layer_(torch::ones({4, 5})).sum(); });
  EXPECT_THAT(std::string(status.message()), HasSubstr("shapes cannot be multiplied (4x5 and 3x2)"));
  EXPECT_THAT(std::string(status.message()), testing::Not(HasSubstr("frame #"))) << "torch's stack trace";

  EXPECT_EQ(StatusOf([]() -> torch::Tensor { throw std::bad_alloc(); }).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(StatusOf([this] { return layer_.weight.select(0, 9).sum(); }).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(StatusOf([]() -> torch::Tensor { throw 7; }).message()), HasSubstr("not a std::exception"));
  ComputeOnce();
}

TEST_F(TensorSourceLoss, OnlyAScalarThatRequiresGradIsALoss) {
  ComputeOnce();
  EXPECT_EQ(StatusOf({}).code(), absl::StatusCode::kFailedPrecondition);
  const Layer another;  // not trained
  const std::vector<std::pair<std::function<torch::Tensor()>, std::string>> wrong = {
      {[this] { return layer_(input_); }, "shape [4,2], not a scalar"},
      {[this] { return layer_(input_).sum().detach(); }, "depends on no trainable parameter"},
      {[this] {
         const torch::NoGradGuard no_grad;
         return layer_(input_).sum();
       },
       "depends on no trainable parameter"},
      {[this, &another] { return another(input_).sum(); }, "depends on no trainable parameter"},
      {[] { return torch::Tensor(); }, "undefined tensor"}};
  for (const auto& [loss, text] : wrong) {
    const absl::Status status = StatusOf(loss);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
    ExpectNoGradients();
  }
}

TEST_F(TensorSourceLoss, NotANumberIsTheCallersBusiness) {
  source_->SetLoss([this] { return (layer_(input_) * std::numeric_limits<float>::quiet_NaN()).sum(); });
  const double loss = source_->ComputeGradients().value();
  EXPECT_TRUE(std::isnan(loss));
}

TEST_F(TensorSourceLoss, GradientsAreNotAccumulated) {
  ComputeOnce();
  ComputeOnce();
  EXPECT_THAT(Floats(source_->gradient(1)), ElementsAre(4, 4));
}

TEST_F(TensorSourceLoss, WorksWhereTheCallerHasSwitchedAutogradOff) {
  const torch::NoGradGuard no_grad;
  ComputeOnce();
  EXPECT_FALSE(torch::GradMode::is_enabled());
}

// Autograd itself makes gradients of the parameter's layout, but adds to an existing one in the existing layout.
TEST_F(TensorSourceLoss, StridedGradientsAreHandedOutRowMajor) {
  const torch::Tensor factor = torch::arange(6, torch::kFloat32).view({3, 2});
  ASSERT_TRUE(StatusOf([&] {
                layer_.weight.mutable_grad() = torch::zeros({3, 2}).t();
                return (layer_.weight.t() * factor).sum() + layer_.bias.expand({5, 2}).sum();
              }).ok());
  ASSERT_FALSE(layer_.weight.grad().is_contiguous());
  EXPECT_THAT(Floats(source_->gradient(0)), ElementsAre(0, 2, 4, 1, 3, 5));
  EXPECT_THAT(Floats(source_->gradient(1)), ElementsAre(5, 5));
}

TEST_F(TensorSourceLoss, AnErrorInMidBackwardLeavesNoGradients) {
  int announced = 0;
  source_->SetGradientReady([&](size_t) { ++announced; });
  const absl::Status status = StatusOf([this] {
    const torch::Tensor input = input_.clone().requires_grad_();
    const torch::Tensor hidden = input * 2;
    hidden.register_hook(
        [](const torch::Tensor&) -> torch::Tensor { throw std::runtime_error("no gradient for you"); });
    return layer_(hidden).sum();
  });
  EXPECT_THAT(std::string(status.message()), HasSubstr("no gradient for you"));
  EXPECT_GT(announced, 0) << "the error came before the first gradient";
  ExpectNoGradients();
}

}  // namespace
}  // namespace muster::tensor_source_test
