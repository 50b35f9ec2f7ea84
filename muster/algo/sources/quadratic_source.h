// The smallest model that can be trained, for tests: the loss is half the squared distance of every trainable variable
// from its optimum, so the gradient is the distance. Used by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "muster/algo/sources/gradient_source.h"

namespace muster {

class QuadraticSource final : public GradientSource {
 public:
  // Makes float32 variables that start at zero; the optimum of element i of a trainable one is i + 1.
  explicit QuadraticSource(std::vector<VariableSpec> variables)
      : variables_(std::move(variables)), values_(variables_.size()), gradients_(variables_.size()) {
    for (size_t i = 0; i < variables_.size(); ++i) values_[i].resize(variables_[i].elements());
    gradients_ = values_;
  }

  static float Optimum(size_t element) { return static_cast<float>(element + 1); }

  const std::vector<VariableSpec>& variables() const override { return variables_; }
  MutableByteSpan value(size_t i) override { return AsMutableBytes(values_[i].data(), values_[i].size()); }
  absl::StatusOr<double> ComputeGradients() override {
    double loss = 0;
    for (size_t i = 0; i < variables_.size(); ++i) {
      for (size_t j = 0; j < values_[i].size(); ++j) {
        gradients_[i][j] = values_[i][j] - Optimum(j);
        if (trainable(i)) loss += 0.5 * gradients_[i][j] * gradients_[i][j];
      }
    }
    ++steps;
    // From the last to the first, like a backward pass.
    for (size_t i = variables_.size(); ready_ && i-- > 0;)
      if (trainable(i)) ready_(i);
    return on_step ? on_step(loss) : loss;
  }
  void AnnounceGradients(GradientReady ready) override { ready_ = std::move(ready); }
  ByteSpan gradient(size_t i) override {
    return trainable(i) ? AsBytes(gradients_[i].data(), gradients_[i].size()) : ByteSpan();
  }

  absl::Status ShowValues() override {
    shown = values_;
    return absl::OkStatus();
  }

  std::vector<float>& values(size_t i) { return values_[i]; }
  float gradient_of(size_t i, size_t element) const { return gradients_[i][element]; }

  // The values at the last ShowValues, one entry per variable.
  std::vector<std::vector<float>> shown;

  // If set, called in each step with the loss; its result replaces that of the step.
  std::function<absl::StatusOr<double>(double loss)> on_step;
  int64_t steps = 0;

 private:
  bool trainable(size_t i) const { return variables_[i].kind == VariableKind::kTrainable; }

  const std::vector<VariableSpec> variables_;
  std::vector<std::vector<float>> values_;
  std::vector<std::vector<float>> gradients_;
  GradientReady ready_;
};

}  // namespace muster
