#include "tests/cluster/digits_network.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>

#include "muster/base/check.h"
#include "muster/base/status_macros.h"
#include "muster/data/dataset/dataset.h"

namespace muster {
namespace {

constexpr size_t kPixels = 64;
constexpr size_t kHidden = 32;
constexpr size_t kDigits = 10;
const std::vector<VariableSpec> kVariables = {{.name = "hidden.weight", .shape = {kPixels, kHidden}},
                                              {.name = "hidden.bias", .shape = {kHidden}},
                                              {.name = "output.weight", .shape = {kHidden, kDigits}},
                                              {.name = "output.bias", .shape = {kDigits}}};
constexpr size_t kHiddenWeight = 0, kHiddenBias = 1, kOutputWeight = 2, kOutputBias = 3;  // indices of kVariables

// The network's result for one row. (Arrays of fixed length on the stack: the compiler vectorises their loops.)
struct RowResult {
  std::array<float, kHidden> hidden{};
  std::array<float, kDigits> shares{};  // the probability of each digit; their sum is 1
};

RowResult RunRow(const DigitsValues& values, std::span<const float> pixels) {
  RowResult result;
  std::copy_n(values[kHiddenBias].begin(), kHidden, result.hidden.begin());
  for (size_t i = 0; i < kPixels; ++i) {
    const float pixel = pixels[i];
    const float* const weights = &values[kHiddenWeight][i * kHidden];
    for (size_t j = 0; j < kHidden; ++j) result.hidden[j] += pixel * weights[j];
  }
  for (float& unit : result.hidden) unit = std::max(unit, 0.0F);
  std::copy_n(values[kOutputBias].begin(), kDigits, result.shares.begin());
  for (size_t j = 0; j < kHidden; ++j) {
    const float unit = result.hidden[j];
    const float* const weights = &values[kOutputWeight][j * kDigits];
    for (size_t k = 0; k < kDigits; ++k) result.shares[k] += unit * weights[k];
  }
  const float largest = *std::max_element(result.shares.begin(), result.shares.end());
  float sum = 0;
  for (float& share : result.shares) {
    share = std::exp(share - largest);
    sum += share;
  }
  for (float& share : result.shares) share /= sum;
  return result;
}

double LossOf(const RowResult& result, int64_t label) { return -std::log(std::max(result.shares[label], 1e-30F)); }

// Adds the gradients of one row's loss, times `share`.
void AddGradients(const DigitsValues& values, std::span<const float> pixels, int64_t label, float share,
                  const RowResult& result, DigitsValues& gradients) {
  std::array<float, kDigits> by_output = result.shares;
  by_output[label] -= 1;
  for (float& error : by_output) error *= share;
  std::array<float, kHidden> by_hidden{};
  for (size_t j = 0; j < kHidden; ++j) {
    if (result.hidden[j] <= 0) continue;
    const float unit = result.hidden[j];
    float* const into = &gradients[kOutputWeight][j * kDigits];
    float sum = 0;
    for (size_t k = 0; k < kDigits; ++k) {
      into[k] += unit * by_output[k];
      sum += values[kOutputWeight][j * kDigits + k] * by_output[k];
    }
    by_hidden[j] = sum;
  }
  for (size_t k = 0; k < kDigits; ++k) gradients[kOutputBias][k] += by_output[k];
  for (size_t j = 0; j < kHidden; ++j) gradients[kHiddenBias][j] += by_hidden[j];
  for (size_t i = 0; i < kPixels; ++i) {
    const float pixel = pixels[i];
    if (pixel == 0) continue;
    float* const into = &gradients[kHiddenWeight][i * kHidden];
    for (size_t j = 0; j < kHidden; ++j) into[j] += pixel * by_hidden[j];
  }
}

// Numbers in [-1, 1) that are the same with every standard library (splitmix64: Steele et al., "Fast splittable
// pseudorandom number generators", 2014).
class Numbers {
 public:
  float Next() {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t bits = state_;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
    bits ^= bits >> 31;
    return static_cast<float>(bits >> 40) / static_cast<float>(1 << 23) - 1;
  }

 private:
  uint64_t state_ = 7;
};

DigitsValues Zeros() {
  DigitsValues values;
  for (size_t i = 0; i < values.size(); ++i) values[i].resize(kVariables[i].elements());
  return values;
}

// Weights uniform in ± √(6 / inputs) (He et al. 2015, for ReLU), biases 0.
DigitsValues FirstValues() {
  DigitsValues values = Zeros();
  Numbers numbers;
  for (float& weight : values[kHiddenWeight]) weight = numbers.Next() * std::sqrt(6.0F / kPixels);
  for (float& weight : values[kOutputWeight]) weight = numbers.Next() * std::sqrt(6.0F / kHidden);
  return values;
}

std::unique_ptr<ExampleStream> BatchesOf(const LabelledRows& train, size_t worker, size_t workers) {
  const std::shared_ptr<const LabelledRows> borrowed(std::shared_ptr<void>(), &train);
  auto stream = Dataset::FromRows(borrowed)
                    .Shuffle({.seed = 1})
                    .Shard(workers, worker)
                    .Batch(16, /*drop_remainder=*/true)
                    .Repeat()
                    .Open();
  MUSTER_CHECK(stream.ok());
  return *std::move(stream);
}

}  // namespace

const std::vector<VariableSpec>& DigitsVariables() { return kVariables; }

double DigitsLoss(const DigitsValues& values, const LabelledRows& data) {
  double loss = 0;
  for (size_t row = 0; row < data.size(); ++row) loss += LossOf(RunRow(values, data.row(row)), data.labels()[row]);
  return loss / static_cast<double>(data.size());
}

double DigitsAccuracy(const DigitsValues& values, const LabelledRows& data) {
  size_t right = 0;
  for (size_t row = 0; row < data.size(); ++row) {
    const auto shares = RunRow(values, data.row(row)).shares;
    right += std::max_element(shares.begin(), shares.end()) - shares.begin() == data.labels()[row] ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(data.size());
}

DigitsNetwork::DigitsNetwork(const LabelledRows& train, size_t worker, size_t workers)
    : batches_(BatchesOf(train, worker, workers)), values_(FirstValues()), gradients_(Zeros()) {}

absl::StatusOr<double> DigitsNetwork::ComputeGradients() {
  RETURN_IF_ERROR(batches_->Next(batch_).status());
  const std::span<const float> features = std::as_const(batch_.features.front().value).As<float>();
  const std::span<const int64_t> labels = std::as_const(batch_.labels).As<int64_t>();
  for (std::vector<float>& gradient : gradients_) std::fill(gradient.begin(), gradient.end(), 0.0F);
  const float share = 1 / static_cast<float>(labels.size());
  double loss = 0;
  for (size_t row = 0; row < labels.size(); ++row) {
    const std::span<const float> pixels = features.subspan(row * kPixels, kPixels);
    const RowResult result = RunRow(values_, pixels);
    loss += LossOf(result, labels[row]) * share;
    AddGradients(values_, pixels, labels[row], share, result, gradients_);
  }
  return loss;
}

}  // namespace muster
