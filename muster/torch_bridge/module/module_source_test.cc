// The reference for all numbers here: an untouched twin of the module, trained by torch's own optimizer. The learning
// rate is a power of two, so that fused and separate multiply-adds round alike and results can be compared bit by bit.
#include "muster/torch_bridge/module/module_source.h"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include <sstream>
#include <tuple>

#include "muster/torch_bridge/module/random_state.h"

namespace muster::module_source_test {
namespace {

namespace nn = torch::nn;
namespace F = torch::nn::functional;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kLearningRate = 0.125;
constexpr int kSteps = 8;

struct Batch {
  torch::Tensor input;
  torch::Tensor label;
};

// A module with a loss, so that one test can train them all.
struct Model : nn::Module {
  virtual torch::Tensor Loss(const Batch& batch) = 0;
};

struct ConvolutionModel final : Model {
  ConvolutionModel()
      : convolution(register_module("convolution", nn::Conv2d(nn::Conv2dOptions(1, 6, 3)))),
        norm(register_module("norm", nn::BatchNorm2d(6))),
        output(register_module("output", nn::Linear(6 * 6 * 6, 10))) {}
  torch::Tensor Loss(const Batch& batch) override {
    return F::cross_entropy(output(torch::relu(norm(convolution(batch.input))).flatten(1)), batch.label);
  }
  static Batch MakeBatch() { return {torch::rand({8, 1, 8, 8}), torch::randint(10, {8}, torch::kLong)}; }
  nn::Conv2d convolution;
  nn::BatchNorm2d norm;
  nn::Linear output;
};

struct LstmModel final : Model {
  LstmModel()
      : embedding(register_module("embedding", nn::Embedding(50, 8))),
        lstm(register_module("lstm", nn::LSTM(nn::LSTMOptions(8, 16).num_layers(2).batch_first(true)))),
        output(register_module("output", nn::Linear(16, 5))) {}
  torch::Tensor Loss(const Batch& batch) override {
    return F::cross_entropy(output(std::get<0>(lstm(embedding(batch.input))).select(1, -1)), batch.label);
  }
  static Batch MakeBatch() { return {torch::randint(50, {6, 7}, torch::kLong), torch::randint(5, {6}, torch::kLong)}; }
  nn::Embedding embedding;
  nn::LSTM lstm;
  nn::Linear output;
};

// Sparse gradients of rows that are distinct, or repeat within a batch.
template <bool kRepeats>
struct SparseModel final : Model {
  SparseModel()
      : embedding(register_module("embedding", nn::Embedding(nn::EmbeddingOptions(20, 4).sparse(true)))),
        output(register_module("output", nn::Linear(4, 3))) {}
  torch::Tensor Loss(const Batch& batch) override {
    return F::cross_entropy(output(embedding(batch.input)), batch.label);
  }
  static Batch MakeBatch() {
    const torch::Tensor rows =
        kRepeats ? torch::randint(10, {16}, torch::kLong) : torch::randperm(20, torch::kLong).narrow(0, 0, 16);
    return {rows, torch::randint(3, {16}, torch::kLong)};
  }
  nn::Embedding embedding;
  nn::Linear output;
};

// One weight under two names: the same tensor, registered by a child and by the model.
struct TiedModel final : Model {
  TiedModel()
      : encoder(register_module("encoder", nn::Linear(nn::LinearOptions(6, 6).bias(false)))),
        decoder_weight(register_parameter("decoder_weight", encoder->weight)) {}
  torch::Tensor Loss(const Batch& batch) override {
    return F::mse_loss(F::linear(torch::tanh(encoder(batch.input)), decoder_weight), batch.label);
  }
  static Batch MakeBatch() { return {torch::rand({4, 6}), torch::rand({4, 6})}; }
  nn::Linear encoder;
  torch::Tensor decoder_weight;
};

// Two tensors tied by pointing one at the other's memory.
struct TwoTensorsModel final : Model {
  TwoTensorsModel()
      : encoder(register_module("encoder", nn::Linear(nn::LinearOptions(6, 6).bias(false)))),
        decoder(register_module("decoder", nn::Linear(nn::LinearOptions(6, 6).bias(false)))) {
    decoder->weight.set_data(encoder->weight);
  }
  torch::Tensor Loss(const Batch& batch) override {
    return F::mse_loss(decoder(torch::tanh(encoder(batch.input))), batch.label);
  }
  static Batch MakeBatch() { return TiedModel::MakeBatch(); }
  nn::Linear encoder, decoder;
};

// `sometimes` is unused in every other minibatch, `never` in all.
struct UnusedModel final : Model {
  UnusedModel()
      : always(register_module("always", nn::Linear(3, 3))),
        sometimes(register_module("sometimes", nn::Linear(3, 3))),
        never(register_module("never", nn::Linear(2, 2))) {}
  torch::Tensor Loss(const Batch& batch) override {
    torch::Tensor hidden = always(batch.input);
    if (calls++ % 2 == 0) hidden = sometimes(hidden);
    return F::mse_loss(hidden, batch.label);
  }
  static Batch MakeBatch() { return {torch::rand({4, 3}), torch::rand({4, 3})}; }
  nn::Linear always, sometimes, never;
  int calls = 0;
};

template <typename T>
void ApplySgd(MutableByteSpan value, ByteSpan gradient) {
  ASSERT_EQ(value.size(), gradient.size());
  T* p = reinterpret_cast<T*>(value.data());
  const T* g = reinterpret_cast<const T*>(gradient.data());
  for (size_t j = 0; j < value.size() / sizeof(T); ++j) p[j] -= static_cast<T>(kLearningRate) * g[j];
}

void ApplySgd(ModuleSource& source) {
  for (size_t i = 0; i < source.variables().size(); ++i) {
    if (source.gradient(i).empty()) continue;
    if (source.variables()[i].dtype == DType::kFloat64)
      ApplySgd<double>(source.value(i), source.gradient(i));
    else
      ApplySgd<float>(source.value(i), source.gradient(i));
  }
}

// Copies of a module's tensors by name.
std::vector<std::pair<std::string, torch::Tensor>> Snapshot(const nn::Module& module) {
  std::vector<std::pair<std::string, torch::Tensor>> copies;
  for (const auto& item : module.named_parameters()) copies.emplace_back(item.key(), item.value().detach().clone());
  for (const auto& item : module.named_buffers()) copies.emplace_back(item.key(), item.value().clone());
  return copies;
}

std::unique_ptr<ModuleSource> MakeSource(std::shared_ptr<nn::Module> module, ModuleSourceOptions options = {}) {
  return ModuleSource::Create(std::move(module), std::move(options)).value();
}

size_t IndexOf(const ModuleSource& source, const std::string& name) {
  for (size_t i = 0; i < source.variables().size(); ++i)
    if (source.variables()[i].name == name) return i;
  ADD_FAILURE() << "no variable " << name;
  return 0;
}

template <typename T>
T Scalar(MutableByteSpan value) {
  EXPECT_EQ(value.size(), sizeof(T));
  return *reinterpret_cast<const T*>(value.data());
}

// Trains `flat` through spans and its untouched twin with torch::optim::SGD, and expects the same bits everywhere.
// First calls `change` on both.
template <typename M>
void ExpectTrainsLikeItsTwin(const std::function<void(M&)>& change = {}, double tolerance = 0) {
  SeedTorch(1);
  auto plain = std::make_shared<M>();
  SeedTorch(1);
  auto flat = std::make_shared<M>();
  if (change) {
    change(*plain);
    change(*flat);
  }
  std::vector<torch::Tensor> trained;
  for (const torch::Tensor& parameter : plain->parameters()) {
    const auto same = [&](const torch::Tensor& other) { return other.is_same(parameter); };
    if (parameter.requires_grad() && std::none_of(trained.begin(), trained.end(), same)) trained.push_back(parameter);
  }
  torch::optim::SGD sgd(trained, torch::optim::SGDOptions(kLearningRate));
  const auto before = Snapshot(*plain);
  const auto source = MakeSource(flat);
  ASSERT_NE(source, nullptr);
  const torch::ScalarType type = plain->parameters()[0].scalar_type();

  for (int step = 0; step < kSteps; ++step) {
    Batch batch = M::MakeBatch();
    if (batch.input.is_floating_point()) batch.input = batch.input.to(type);
    sgd.zero_grad();
    const torch::Tensor expected = plain->Loss(batch);
    expected.backward();
    sgd.step();

    source->SetLoss([&] { return flat->Loss(batch); });
    const double loss = source->ComputeGradients().value();
    ASSERT_NEAR(loss, expected.template item<double>(), tolerance) << "step " << step;
    ApplySgd(*source);
  }

  const auto expected = Snapshot(*plain), actual = Snapshot(*flat);
  ASSERT_EQ(expected.size(), actual.size());
  bool learned = false;
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(expected[i].first, actual[i].first);
    EXPECT_TRUE(torch::allclose(actual[i].second, expected[i].second, tolerance, tolerance)) << expected[i].first;
    learned |= !torch::equal(expected[i].second, before[i].second);
  }
  EXPECT_TRUE(learned) << "the compared modules are untrained";
  for (size_t i = 0; i < source->variables().size(); ++i)
    EXPECT_EQ(source->value(i).data(), static_cast<std::byte*>(source->tensor(i).data_ptr()));
}

TEST(ModuleSourceTraining, ConvolutionAndBatchNorm) { ExpectTrainsLikeItsTwin<ConvolutionModel>(); }

TEST(ModuleSourceTraining, EmbeddingAndLstm) { ExpectTrainsLikeItsTwin<LstmModel>(); }

// torch subtracts repeated rows one by one, we subtract their sum: equal up to rounding.
TEST(ModuleSourceTraining, SparseEmbedding) {
  ExpectTrainsLikeItsTwin<SparseModel<false>>();
  ExpectTrainsLikeItsTwin<SparseModel<true>>({}, 1e-5);
}

TEST(ModuleSourceTraining, TiedWeights) { ExpectTrainsLikeItsTwin<TiedModel>(); }

// torch's optimizer steps twice, we once with the sum: equal up to rounding.
TEST(ModuleSourceTraining, TwoTensorsOfOneMemory) { ExpectTrainsLikeItsTwin<TwoTensorsModel>({}, 1e-5); }

TEST(ModuleSourceTraining, UnusedParameters) { ExpectTrainsLikeItsTwin<UnusedModel>(); }

TEST(ModuleSourceTraining, FrozenParameters) {
  ExpectTrainsLikeItsTwin<ConvolutionModel>([](ConvolutionModel& model) {
    for (torch::Tensor& parameter : model.convolution->parameters()) parameter.set_requires_grad(false);
  });
}

TEST(ModuleSourceTraining, DoublePrecision) {
  ExpectTrainsLikeItsTwin<ConvolutionModel>([](ConvolutionModel& model) { model.to(torch::kFloat64); });
  ExpectTrainsLikeItsTwin<LstmModel>([](LstmModel& model) { model.to(torch::kFloat64); });
}

TEST(ModuleSourceTraining, WeightsThatWereNotRowMajor) {
  SeedTorch(1);
  auto model = std::make_shared<ConvolutionModel>();
  torch::Tensor weight = model->convolution->weight;
  weight.set_data(torch::rand({3, 3, 6, 1}).permute({2, 3, 0, 1}));
  ASSERT_FALSE(weight.is_contiguous());
  const torch::Tensor before = weight.detach().clone();
  const auto source = MakeSource(model);
  EXPECT_TRUE(weight.is_contiguous());
  EXPECT_TRUE(torch::equal(weight, before));
}

TEST(ModuleSourceVariables, NamesKindsTypesAndShapes) {
  auto model = std::make_shared<ConvolutionModel>();
  model->convolution->bias.set_requires_grad(false);
  ModuleSourceOptions options;
  options.devices["output.bias"] = "/job:ps/task:1";
  const auto source = MakeSource(model, options);
  constexpr auto kTrainable = VariableKind::kTrainable, kFrozen = VariableKind::kFrozen,
                 kBuffer = VariableKind::kBuffer;
  EXPECT_THAT(source->variables(),
              ElementsAre(VariableSpec{"convolution.weight", DType::kFloat32, {6, 1, 3, 3}, kTrainable, ""},
                          VariableSpec{"convolution.bias", DType::kFloat32, {6}, kFrozen, ""},
                          VariableSpec{"norm.weight", DType::kFloat32, {6}, kTrainable, ""},
                          VariableSpec{"norm.bias", DType::kFloat32, {6}, kTrainable, ""},
                          VariableSpec{"output.weight", DType::kFloat32, {10, 216}, kTrainable, ""},
                          VariableSpec{"output.bias", DType::kFloat32, {10}, kTrainable, "/job:ps/task:1"},
                          VariableSpec{"norm.running_mean", DType::kFloat32, {6}, kBuffer, ""},
                          VariableSpec{"norm.running_var", DType::kFloat32, {6}, kBuffer, ""},
                          VariableSpec{"norm.num_batches_tracked", DType::kInt64, {}, kBuffer, ""}));
}

TEST(ModuleSourceVariables, BuffersAreReadAndWrittenThroughTheSpan) {
  auto model = std::make_shared<ConvolutionModel>();
  const auto source = MakeSource(model);
  const size_t batches = IndexOf(*source, "norm.num_batches_tracked");
  const Batch batch = ConvolutionModel::MakeBatch();
  source->SetLoss([&] { return model->Loss(batch); });
  ASSERT_TRUE(source->ComputeGradients().ok());
  ASSERT_TRUE(source->ComputeGradients().ok());
  EXPECT_EQ(Scalar<int64_t>(source->value(batches)), 2);
  *reinterpret_cast<int64_t*>(source->value(batches).data()) = 41;
  ASSERT_TRUE(source->ComputeGradients().ok());
  EXPECT_EQ(model->norm->num_batches_tracked.item<int64_t>(), 42);
  EXPECT_TRUE(source->gradient(batches).empty());
}

TEST(ModuleSourceVariables, TiedWeightsAreOneVariableWithAliases) {
  const auto one_tensor = MakeSource(std::make_shared<TiedModel>());
  ASSERT_EQ(one_tensor->variables().size(), 1);
  EXPECT_EQ(one_tensor->variables()[0].name, "decoder_weight");
  EXPECT_THAT(one_tensor->aliases(0), ElementsAre("encoder.weight"));

  const auto two_tensors = MakeSource(std::make_shared<TwoTensorsModel>());
  ASSERT_EQ(two_tensors->variables().size(), 1);
  EXPECT_EQ(two_tensors->variables()[0].name, "encoder.weight");
  EXPECT_THAT(two_tensors->aliases(0), ElementsAre("decoder.weight"));

  auto twice = std::make_shared<nn::SequentialImpl>();
  const nn::Linear layer(3, 3);
  twice->push_back("a", layer);
  twice->push_back("b", layer);
  const auto one_module = MakeSource(twice);
  ASSERT_EQ(one_module->variables().size(), 2);
  EXPECT_THAT(one_module->aliases(0), ElementsAre("b.weight"));
  EXPECT_THAT(one_module->aliases(1), ElementsAre("b.bias"));
}

TEST(ModuleSourceMemory, SuppliedMemoryIsUsedAndKeptAlive) {
  struct Arena {
    std::vector<std::vector<double>> blocks;
  };
  auto arena = std::make_shared<Arena>();
  const std::weak_ptr<Arena> watch = arena;
  auto model = std::make_shared<ConvolutionModel>();
  const auto before = Snapshot(*model);
  ModuleSourceOptions options;
  options.memory = [&blocks = arena->blocks](const VariableSpec& spec) -> absl::StatusOr<MutableByteSpan> {
    blocks.emplace_back((spec.bytes() + 7) / 8);
    return AsMutableBytes(blocks.back().data(), blocks.back().size()).subspan(0, spec.bytes());
  };
  options.memory_owner = arena;
  auto source = MakeSource(model, options);
  options = {};
  for (size_t i = 0; i < source->variables().size(); ++i)
    EXPECT_EQ(static_cast<void*>(source->value(i).data()), arena->blocks[i].data());
  arena.reset();
  source.reset();
  EXPECT_FALSE(watch.expired()) << "the module still points there";
  const auto after = Snapshot(*model);
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(torch::equal(after[i].second, before[i].second));
  model.reset();
  EXPECT_TRUE(watch.expired());
}

TEST(ModuleSourceMemory, UnfitMemoryIsRefusedAndTheModuleLeftAlone) {
  auto model = std::make_shared<ConvolutionModel>();
  const void* before = model->convolution->weight.data_ptr();
  std::vector<double> memory(10000);
  const auto refused = [&](std::function<absl::StatusOr<MutableByteSpan>(const VariableSpec&)> supply) {
    ModuleSourceOptions options;
    options.memory = std::move(supply);
    const absl::Status status = ModuleSource::Create(model, options).status();
    EXPECT_EQ(model->convolution->weight.data_ptr(), before);
    return status;
  };
  const MutableByteSpan all = AsMutableBytes(memory.data(), memory.size());
  EXPECT_THAT(std::string(refused([&](const VariableSpec&) { return all; }).message()), HasSubstr("needs 216 bytes"));
  EXPECT_THAT(std::string(refused([&](const VariableSpec& spec) { return all.subspan(1, spec.bytes()); }).message()),
              HasSubstr("isn't aligned to 4 bytes"));
  EXPECT_EQ(refused([&](const VariableSpec& spec) -> absl::StatusOr<MutableByteSpan> {
              if (spec.name == "norm.bias") return absl::ResourceExhaustedError("arena full");
              return all.subspan(0, spec.bytes());
            }),
            absl::ResourceExhaustedError("arena full"));
}

TEST(ModuleSourceMemory, LoadedWeightsAreBroughtIn) {
  SeedTorch(3);
  auto model = std::make_shared<ConvolutionModel>();
  std::stringstream saved;
  torch::save(std::shared_ptr<nn::Module>(model), saved);
  const torch::Tensor expected = model->output->bias.detach().clone();
  SeedTorch(4);
  auto other = std::make_shared<ConvolutionModel>();
  const auto source = MakeSource(other);
  const size_t bias = IndexOf(*source, "output.bias");
  const std::byte* address = source->value(bias).data();
  std::shared_ptr<nn::Module> as_module = other;
  torch::load(as_module, saved);
  ASSERT_NE(other->output->bias.data_ptr(), address) << "torch::load no longer detaches: Reattach is not needed";

  EXPECT_EQ(source->value(bias).data(), address);
  EXPECT_EQ(other->output->bias.data_ptr(), address);
  EXPECT_TRUE(torch::equal(other->output->bias, expected));
  const Batch batch = ConvolutionModel::MakeBatch();
  source->SetLoss([&] { return other->Loss(batch); });
  ASSERT_TRUE(source->ComputeGradients().ok());
  for (size_t i = 0; i < source->variables().size(); ++i)
    EXPECT_EQ(source->tensor(i).data_ptr(), source->value(i).data()) << source->variables()[i].name;
}

TEST(ModuleSourceMemory, AnotherTypeOrShapeIsReported) {
  auto model = std::make_shared<ConvolutionModel>();
  const auto source = MakeSource(model);
  const Batch batch = ConvolutionModel::MakeBatch();
  source->SetLoss([&] { return model->Loss(batch); });
  model->norm->bias.set_data(torch::zeros({7}));
  absl::Status status = source->ComputeGradients().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("'norm.bias' was float32 [6]"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("[7]"));
  model->norm->bias.set_data(torch::zeros({6}, torch::kFloat64));
  EXPECT_THAT(std::string(source->Reattach().message()), HasSubstr("now Double [6]"));
  model->norm->bias.set_data(torch::zeros({6}));
  EXPECT_TRUE(source->ComputeGradients().ok());
}

TEST(ModuleSourceReady, GradientsAreAnnouncedWhenFinal) {
  auto model = std::make_shared<UnusedModel>();
  auto source = MakeSource(model);
  const Batch batch = UnusedModel::MakeBatch();
  std::vector<std::string> announced;
  std::vector<std::vector<std::byte>> seen;
  source->SetLoss([&] { return model->Loss(batch); });
  source->SetGradientReady([&](size_t i) {
    announced.push_back(source->variables()[i].name);
    const ByteSpan gradient = source->gradient(i);
    seen.emplace_back(gradient.begin(), gradient.end());
  });
  ASSERT_TRUE(source->ComputeGradients().ok());
  EXPECT_THAT(announced,
              testing::UnorderedElementsAre("always.weight", "always.bias", "sometimes.weight", "sometimes.bias"));
  EXPECT_THAT(announced[0], HasSubstr("sometimes")) << "the last layer's gradients are final first";
  for (size_t k = 0; k < announced.size(); ++k) {
    const ByteSpan gradient = source->gradient(IndexOf(*source, announced[k]));
    EXPECT_EQ(seen[k], std::vector<std::byte>(gradient.begin(), gradient.end())) << announced[k];
    EXPECT_FALSE(seen[k].empty());
  }

  announced.clear();
  source->SetGradientReady({});
  ASSERT_TRUE(source->ComputeGradients().ok());
  EXPECT_THAT(announced, ElementsAre());

  source->SetGradientReady([&](size_t) { announced.emplace_back("too late"); });
  source.reset();
  model->Loss(batch).backward();
  EXPECT_THAT(announced, ElementsAre()) << "the hooks went with the source";
}

}  // namespace
}  // namespace muster::module_source_test
