// Torch's random generators as they were, once this is gone: what evaluates or predicts in the middle of training must
// not change what is trained. Of the CPU, and of the GPU that is computed on. Used by one thread.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <optional>
#include <string>

namespace muster {

class KeptRandomState {
 public:
  // `seed`: what the generators begin with meanwhile; unset: they go on from where they are.
  KeptRandomState(const std::optional<uint64_t>& seed, const torch::Device& device);
  ~KeptRandomState();
  KeptRandomState(const KeptRandomState&) = delete;
  KeptRandomState& operator=(const KeptRandomState&) = delete;

 private:
  const torch::Device device_;
  const std::string cpu_;
  torch::Tensor gpu_;  // undefined on the CPU
};

}  // namespace muster
