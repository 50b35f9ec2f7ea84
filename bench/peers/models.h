// Our versions of the models that `bench peers` trains with every framework. Parameters are named as in the files that
// all of them read (data.h): a perceptron's are hidden0, …, output; the convolutional network's conv0, conv1, output;
// the bag of embeddings' table, output.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "bench/support/mlp.h"
#include "muster/torch_bridge/module/embedding.h"

namespace muster::bench {

inline constexpr int64_t kTableRows = 1'000'000;
inline constexpr int64_t kTableWidth = 64;

// The table's initial values, the same on a parameter server and in the file.
inline RowInitializer TableInitializer() { return RowInitializer::Uniform(-0.1, 0.1, 7); }

struct PeerBatch {
  torch::Tensor inputs;  // float32 [batch, 784]; int64 [batch, 32] for the embedding model
  torch::Tensor labels;  // int64 [batch], 0 to 9
};

struct PeerModel {
  std::shared_ptr<torch::nn::Module> module;
  std::function<torch::Tensor(const torch::Tensor& inputs)> logits;  // [batch, 10]

  torch::Tensor Loss(const PeerBatch& batch) const {
    return torch::nn::functional::cross_entropy(logits(batch.inputs), batch.labels);
  }
};

// Two convolutions of 5 x 5, each followed by a maximum over 2 x 2, and a linear layer: 28,938 parameters.
class PeerConvolutionImpl : public torch::nn::Module {
 public:
  PeerConvolutionImpl() {
    conv0_ = register_module("conv0", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 16, 5).padding(2)));
    conv1_ = register_module("conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(16, 32, 5).padding(2)));
    output_ = register_module("output", torch::nn::Linear(32 * 7 * 7, 10));
  }
  torch::Tensor forward(const torch::Tensor& inputs) {
    torch::Tensor values = inputs.view({-1, 1, 28, 28});
    values = torch::max_pool2d(torch::relu(conv0_(values)), 2);
    values = torch::max_pool2d(torch::relu(conv1_(values)), 2);
    return output_(values.flatten(1));
  }

 private:
  torch::nn::Conv2d conv0_ = nullptr, conv1_ = nullptr;
  torch::nn::Linear output_ = nullptr;
};
TORCH_MODULE(PeerConvolution);

// The sum of an example's rows, and a linear layer. The rows are on the parameter servers.
class PeerEmbeddingImpl : public torch::nn::Module {
 public:
  PeerEmbeddingImpl() {
    table_ = register_module("table",
                             Embedding({.rows = kTableRows, .dimension = kTableWidth, .initial = TableInitializer()}));
    output_ = register_module("output", torch::nn::Linear(kTableWidth, 10));
  }
  torch::Tensor forward(const torch::Tensor& inputs) { return output_(table_(inputs).sum(1)); }

 private:
  Embedding table_ = nullptr;
  torch::nn::Linear output_ = nullptr;
};
TORCH_MODULE(PeerEmbedding);

// The same with the table in this process, for the single-process loop: sparse gradients, as in torch.
class PeerLocalEmbeddingImpl : public torch::nn::Module {
 public:
  PeerLocalEmbeddingImpl() {
    table_ = register_module(
        "table", torch::nn::EmbeddingBag(
                     torch::nn::EmbeddingBagOptions(kTableRows, kTableWidth).mode(torch::kSum).sparse(true)));
    output_ = register_module("output", torch::nn::Linear(kTableWidth, 10));
  }
  torch::Tensor forward(const torch::Tensor& inputs) { return output_(table_(inputs)); }

 private:
  torch::nn::EmbeddingBag table_ = nullptr;
  torch::nn::Linear output_ = nullptr;
};
TORCH_MODULE(PeerLocalEmbedding);

template <typename Module>
PeerModel AsPeerModel(const Module& module) {
  return {module.ptr(), [held = module](const torch::Tensor& inputs) mutable { return held->forward(inputs); }};
}

// `model` is mlp100, mlp2048, conv or embedding. `local`: no other process holds a part of it.
inline PeerModel MakePeerModel(const std::string& model, bool local) {
  if (model == "conv") return AsPeerModel(PeerConvolution());
  if (model != "embedding") return AsPeerModel(Mlp(MlpWork{.model = model}));
  if (local) return AsPeerModel(PeerLocalEmbedding());
  return AsPeerModel(PeerEmbedding());
}

}  // namespace muster::bench
