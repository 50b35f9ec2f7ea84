// A perceptron 64-32-10 with ReLU that learns the digits of examples/data, in plain loops over float32: quick, without
// torch, and the same on every machine except for the last bits of sums and of exp. Used by one thread.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "muster/algo/sources/gradient_source.h"
#include "muster/data/example_stream.h"
#include "muster/data/labelled_rows.h"

namespace muster {

// The variables' values in order: hidden.weight [64, 32], hidden.bias [32], output.weight [32, 10], output.bias [10].
using DigitsValues = std::array<std::vector<float>, 4>;

const std::vector<VariableSpec>& DigitsVariables();

// Returns the mean cross-entropy over all rows.
double DigitsLoss(const DigitsValues& values, const LabelledRows& data);
// Returns the share of rows whose digit is the most probable one.
double DigitsAccuracy(const DigitsValues& values, const LabelledRows& data);

class DigitsNetwork final : public GradientSource {
 public:
  // Draws minibatches of 16 rows of this worker's share, shuffled anew in each epoch, always in the same order. All
  // workers begin with the same values. `train` must outlive it.
  DigitsNetwork(const LabelledRows& train, size_t worker, size_t workers);

  const std::vector<VariableSpec>& variables() const override { return DigitsVariables(); }
  MutableByteSpan value(size_t i) override { return AsMutableBytes(values_[i].data(), values_[i].size()); }
  absl::StatusOr<double> ComputeGradients() override;
  ByteSpan gradient(size_t i) override { return AsBytes(gradients_[i].data(), gradients_[i].size()); }

  const DigitsValues& values() const { return values_; }

 private:
  std::unique_ptr<ExampleStream> batches_;
  Example batch_;
  DigitsValues values_;
  DigitsValues gradients_;
};

}  // namespace muster
