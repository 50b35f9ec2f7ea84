#include "bench/support/local_loop.h"

#include <torch/torch.h>

#include <memory>
#include <utility>
#include <vector>

#include "bench/support/mlp.h"

namespace muster::bench {
namespace {

class Optimizer {
 public:
  Optimizer(const MlpWork& work, std::vector<torch::Tensor> parameters)
      : adam_(work.rule == "adam"), parameters_(std::move(parameters)) {
    for (const torch::Tensor& parameter : parameters_) {
      means_.push_back(torch::zeros_like(parameter));
      squares_.push_back(torch::zeros_like(parameter));
      steps_.push_back(torch::zeros({}));
    }
  }
  void Step() {
    const torch::NoGradGuard no_grad;
    if (adam_) {
      std::vector<torch::Tensor> gradients;
      for (torch::Tensor& parameter : parameters_) gradients.push_back(parameter.grad());
      for (torch::Tensor& step : steps_) step.add_(1);
      at::_fused_adam_(parameters_, gradients, means_, squares_, {}, steps_, kMlpAdamLearningRate, 0.9, 0.999, 0, 1e-8,
                       /*amsgrad=*/false, /*maximize=*/false);
    }
    for (torch::Tensor& parameter : parameters_) {
      if (!adam_) parameter.add_(parameter.grad(), -kMlpLearningRate);
      parameter.mutable_grad().reset();
    }
  }

 private:
  const bool adam_;
  std::vector<torch::Tensor> parameters_, means_, squares_, steps_;
};

}  // namespace

std::function<void()> MakeLocalStep(const MlpWork& work, uint64_t seed) {
  torch::set_num_threads(1);
  // As muster does. Otherwise Adam's moments of weights without a gradient become denormal, and its step much slower.
  at::globalContext().setFlushDenormal(true);
  const auto data = std::make_shared<MlpData>(seed);
  Mlp model(work);
  const auto optimizer = std::make_shared<Optimizer>(work, model->parameters());
  return [data, model, optimizer]() mutable {
    MlpLoss(model, data->Next()).backward();
    optimizer->Step();
  };
}

}  // namespace muster::bench
