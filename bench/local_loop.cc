#include "bench/local_loop.h"

#include <torch/torch.h>

#include <chrono>
#include <vector>

#include "bench/mlp.h"

namespace muster::bench {
namespace {

// Steps a second of `step` over about `seconds`; the clock is read every 16 steps.
template <typename Step>
double Rate(double seconds, Step&& step) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  double elapsed = 0;
  int64_t steps = 0;
  do {
    for (int i = 0; i < 16; ++i) step();
    steps += 16;
    elapsed = std::chrono::duration<double>(Clock::now() - start).count();
  } while (elapsed < seconds);
  return static_cast<double>(steps) / elapsed;
}

}  // namespace

double MeasureLocalStepsPerSecond(double seconds) {
  torch::set_num_threads(1);
  MlpData data(1);
  Mlp model;
  std::vector<torch::Tensor> parameters = model->parameters();
  const auto step = [&] {
    MlpLoss(model, data.Next()).backward();
    const torch::NoGradGuard no_grad;
    for (torch::Tensor& parameter : parameters) {
      parameter.add_(parameter.grad(), -kMlpLearningRate);
      parameter.mutable_grad().reset();
    }
  };
  Rate(seconds / 10, step);
  return Rate(seconds, step);
}

}  // namespace muster::bench
