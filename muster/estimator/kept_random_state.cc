#include "muster/estimator/kept_random_state.h"

#include <mutex>

#include "muster/torch_bridge/module/random_state.h"

namespace muster {
namespace {

void SeedGenerator(torch::Generator generator, uint64_t seed) {
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_current_seed(seed);
}

}  // namespace

KeptRandomState::KeptRandomState(const std::optional<uint64_t>& seed, const torch::Device& device)
    : device_(device), cpu_(TorchRandomState()) {
  if (device.is_cuda()) {
    torch::Generator generator = at::globalContext().defaultGenerator(device);
    const std::lock_guard<std::mutex> lock(generator.mutex());
    gpu_ = generator.get_state();
  }
  if (!seed) return;
  SeedGenerator(at::detail::getDefaultCPUGenerator(), *seed);
  if (gpu_.defined()) SeedGenerator(at::globalContext().defaultGenerator(device), *seed);
}

KeptRandomState::~KeptRandomState() {
  SetTorchRandomState(cpu_).IgnoreError();  // can't fail: it is this process's own state
  if (!gpu_.defined()) return;
  torch::Generator generator = at::globalContext().defaultGenerator(device_);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(gpu_);
}

}  // namespace muster
