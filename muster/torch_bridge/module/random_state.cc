#include "muster/torch_bridge/module/random_state.h"

#include <torch/torch.h>

#include <cstring>
#include <mutex>

#include "muster/torch_bridge/module/torch_status.h"

namespace muster {

void SeedTorch(uint64_t seed, uint64_t stream) {
  // Stream 0 is the seed itself, so that a program seeded with torch::manual_seed draws the same. The others are spread
  // by the finaliser of splitmix64 (Steele, Lea and Flood 2014): neighbouring seeds and streams must not meet.
  uint64_t mixed = seed;
  if (stream != 0) {
    mixed += stream * 0x9e3779b97f4a7c15U;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebU;
    mixed ^= mixed >> 31;
  }
  torch::manual_seed(mixed);
}

std::string TorchRandomState() {
  torch::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  const torch::Tensor state = generator.get_state();
  return {static_cast<const char*>(state.const_data_ptr()), state.nbytes()};
}

absl::Status SetTorchRandomState(absl::string_view state) {
  const absl::Status status = CatchTorch("restoring torch's random generator", [state] {
    torch::Tensor bytes = torch::empty({static_cast<int64_t>(state.size())}, torch::kUInt8);
    std::memcpy(bytes.mutable_data_ptr(), state.data(), state.size());
    torch::Generator generator = at::detail::getDefaultCPUGenerator();
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_state(bytes);
    return absl::OkStatus();
  });
  return status.ok() ? status : absl::InvalidArgumentError(status.message());
}

}  // namespace muster
