// The smallest model that can be trained, for tests: the loss is half the squared distance of every trainable variable
// from its optimum, so the gradient is the distance. Used by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "muster/algo/sources/float_source.h"

namespace muster {

class QuadraticSource final : public FloatSource {
 public:
  // The variables start at zero; the optimum of element i of a trainable one is i + 1.
  using FloatSource::FloatSource;

  static float Optimum(size_t element) { return static_cast<float>(element + 1); }

  absl::StatusOr<double> ComputeGradients() override {
    double loss = 0;
    for (size_t i = 0; i < values_.size(); ++i) {
      for (size_t j = 0; j < values_[i].size(); ++j) {
        gradients_[i][j] = values_[i][j] - Optimum(j);
        if (trainable(i)) loss += 0.5 * gradients_[i][j] * gradients_[i][j];
      }
    }
    ++steps;
    Announce();
    return on_step ? on_step(loss) : loss;
  }
  absl::Status ShowValues() override {
    shown = values_;
    return absl::OkStatus();
  }

  float gradient_of(size_t i, size_t element) const { return gradients_[i][element]; }

  // The values at the last ShowValues, one entry per variable.
  std::vector<std::vector<float>> shown;

  // If set, called in each step with the loss; its result replaces that of the step.
  std::function<absl::StatusOr<double>(double loss)> on_step;
  int64_t steps = 0;
};

}  // namespace muster
