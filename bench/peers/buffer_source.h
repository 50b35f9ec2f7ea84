// The work `push_pull` of `bench peers`: computes nothing, so that only the way to the parameter server and back is
// measured, with the plain addition there. One variable of 100 MB, whose gradient is 1 everywhere. Not thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "muster/algo/sources/gradient_source.h"

namespace muster::bench {

inline constexpr int64_t kBufferElements = 25'000'000;
// A power of two, so that every intermediate value is exact.
inline constexpr double kBufferLearningRate = 1.0 / 1024;

class BufferSource final : public GradientSource {
 public:
  BufferSource() : own_(kBufferElements), gradient_(kBufferElements, 1.0f) {
    memory_ = AsMutableBytes(own_.data(), own_.size());
  }

  const std::vector<VariableSpec>& variables() const override { return variables_; }
  MutableByteSpan value(size_t i) override { return i == 0 ? memory_ : MutableByteSpan(); }
  bool UseMemory(size_t, MutableByteSpan memory, std::shared_ptr<void> owner) override {
    memory_ = memory;
    owner_ = std::move(owner);
    return true;
  }
  absl::StatusOr<double> ComputeGradients() override { return 0.0; }
  ByteSpan gradient(size_t) override { return AsBytes(gradient_.data(), gradient_.size()); }

  float first() const { return *reinterpret_cast<const float*>(memory_.data()); }

 private:
  const std::vector<VariableSpec> variables_ = {{.name = "buffer", .shape = {kBufferElements}}};
  std::vector<float> own_;
  const std::vector<float> gradient_;
  MutableByteSpan memory_;  // own_, or the store's
  std::shared_ptr<void> owner_;
};

}  // namespace muster::bench
