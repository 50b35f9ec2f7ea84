// Restores torch's random generators when it is destroyed: an evaluation or prediction in the middle of training must
// not change what is trained. Covers the CPU's generator, and that of the GPU in use. Used by one thread.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <optional>
#include <string>

namespace muster {

class KeptRandomState {
 public:
  // `seed`: the generators start from it meanwhile; unset: they continue from where they are.
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
