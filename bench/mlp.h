// The training work of `bench steps`, shared by the local reference loop and the distributed worker so that both run
// the very same forward and backward: a perceptron 784-100-10 with ReLU, minibatches of 100 generated images,
// cross-entropy, plain SGD. 318 KB of parameters; small on purpose, so that every microsecond beside the compute shows.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <vector>

namespace muster::bench {

inline constexpr char kMlpName[] = "mlp100";
inline constexpr double kMlpLearningRate = 0.01;

class MlpImpl : public torch::nn::Module {
 public:
  MlpImpl()
      : hidden_(register_module("hidden", torch::nn::Linear(784, 100))),
        output_(register_module("output", torch::nn::Linear(100, 10))) {}

  // [batch, 784] -> logits [batch, 10]
  torch::Tensor forward(const torch::Tensor& images) { return output_(torch::relu(hidden_(images))); }

 private:
  torch::nn::Linear hidden_, output_;
};
TORCH_MODULE(Mlp);

struct MlpBatch {
  torch::Tensor images;  // float32 [100, 784], uniform in [0, 1)
  torch::Tensor labels;  // int64 [100], 0 to 9
};

// A ring of minibatches made beforehand, so that making data isn't measured. 16 are 5 MB: more than a core's own cache,
// so that images come from memory as they would in training.
class MlpData {
 public:
  explicit MlpData(uint64_t seed) {
    torch::manual_seed(seed);
    for (int i = 0; i < 16; ++i)
      batches_.push_back({torch::rand({100, 784}), torch::randint(10, {100}, torch::kInt64)});
  }

  const MlpBatch& Next() { return batches_[next_++ % batches_.size()]; }

 private:
  std::vector<MlpBatch> batches_;
  size_t next_ = 0;
};

inline torch::Tensor MlpLoss(Mlp& model, const MlpBatch& batch) {
  return torch::nn::functional::cross_entropy(model->forward(batch.images), batch.labels);
}

}  // namespace muster::bench
