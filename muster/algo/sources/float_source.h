// Float32 variables and gradients in plain memory, for tests and measurements: a derived class computes the gradients,
// or they stay as they are. Used by one thread.
#pragma once

#include <utility>
#include <vector>

#include "muster/algo/sources/gradient_source.h"

namespace muster {

class FloatSource : public GradientSource {
 public:
  // All elements begin with these.
  explicit FloatSource(std::vector<VariableSpec> variables, float value = 0, float gradient = 0)
      : variables_(std::move(variables)) {
    for (const VariableSpec& variable : variables_) {
      values_.emplace_back(variable.elements(), value);
      gradients_.emplace_back(variable.elements(), gradient);
    }
  }

  const std::vector<VariableSpec>& variables() const override { return variables_; }
  MutableByteSpan value(size_t i) override { return AsMutableBytes(values_[i].data(), values_[i].size()); }
  absl::StatusOr<double> ComputeGradients() override { return 0.0; }
  void AnnounceGradients(GradientReady ready) override { ready_ = std::move(ready); }
  ByteSpan gradient(size_t i) override {
    return trainable(i) ? AsBytes(gradients_[i].data(), gradients_[i].size()) : ByteSpan();
  }

  std::vector<float>& values(size_t i) { return values_[i]; }

 protected:
  bool trainable(size_t i) const { return variables_[i].kind == VariableKind::kTrainable; }
  // Announces all gradients from the last to the first, like a backward pass.
  void Announce() {
    for (size_t i = variables_.size(); ready_ && i-- > 0;)
      if (!gradient(i).empty()) ready_(i);
  }

  std::vector<std::vector<float>> values_;
  std::vector<std::vector<float>> gradients_;

 private:
  const std::vector<VariableSpec> variables_;
  GradientReady ready_;
};

}  // namespace muster
