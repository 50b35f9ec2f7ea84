// The training work of `bench steps`, shared by the local reference loop and the distributed worker so that both run
// exactly the same forward and backward: perceptrons with ReLU, minibatches of 100 generated images, cross-entropy.
// 784-100-10 has 318 KB of parameters, small on purpose, so that every microsecond beside the compute shows;
// 784-2048-2048-10 has 23 MB, so that every pass over them does.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <string>
#include <vector>

namespace muster::bench {

// The model and the rule.
struct MlpWork {
  std::string model = "mlp100";  // or mlp2048
  std::string rule = "sgd";      // or adam
};

inline constexpr double kMlpLearningRate = 0.01;  // of SGD
inline constexpr double kMlpAdamLearningRate = 0.001;

class MlpImpl : public torch::nn::Module {
 public:
  explicit MlpImpl(const MlpWork& work) {
    int64_t from = 784;
    const std::vector<int64_t> hidden =
        work.model == "mlp2048" ? std::vector<int64_t>{2048, 2048} : std::vector<int64_t>{100};
    for (const int64_t width : hidden) {
      hidden_.push_back(register_module("hidden" + std::to_string(hidden_.size()), torch::nn::Linear(from, width)));
      from = width;
    }
    output_ = register_module("output", torch::nn::Linear(from, 10));
  }

  // [batch, 784] -> logits [batch, 10]
  torch::Tensor forward(torch::Tensor values) {
    for (torch::nn::Linear& layer : hidden_) values = torch::relu(layer(values));
    return output_(values);
  }

 private:
  std::vector<torch::nn::Linear> hidden_;
  torch::nn::Linear output_ = nullptr;
};
TORCH_MODULE(Mlp);

struct MlpBatch {
  torch::Tensor images;  // float32 [100, 784], uniform in [0, 1)
  torch::Tensor labels;  // int64 [100], 0 to 9
};

// A ring of minibatches made in advance, so that making data isn't measured. 16 take 5 MB, more than a core's own
// cache, so that images come from memory as they would in training.
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
