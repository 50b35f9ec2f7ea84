// The one file that depends on libtorch's version; written against 2.11 to 2.13. What changes between versions is in
// torch::autograd::impl: up to 2.11 autograd's nodes are std::shared_ptr, from 2.13 on c10::intrusive_ptr, so nothing
// here (or anywhere else) names the type of a node. Thread safety: that of the tensor passed in.
#pragma once

#include <c10/core/AllocatorConfig.h>
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#if TORCH_VERSION_MAJOR < 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 11)
#error "muster needs libtorch 2.11 or newer"
#endif

namespace muster {

// Calls `ready` each time backward has put the final gradient into `leaf.grad()`: once per backward, also when the
// tensor is used in several places; never when it is unused. On the CPU it runs on the thread that called backward.
// Replaces an earlier hook of the same tensor; an empty function removes it. Costs less than 100 ns per tensor and
// step.
inline void SetGradientReadyHook(const torch::Tensor& leaf, std::function<void()> ready) {
  struct Hook final : torch::autograd::PostAccumulateGradHook {
    explicit Hook(std::function<void()> f) : ready(std::move(f)) {}
    void operator()(const torch::autograd::Variable&) override { ready(); }
    std::function<void()> ready;
  };
  torch::autograd::impl::set_post_acc_grad_hooks(leaf, ready ? std::make_unique<Hook>(std::move(ready)) : nullptr);
}

// True if an existing graph has a node that accumulates the gradient of `leaf`; that node holds `leaf`.
inline bool HasGradientNode(const torch::Tensor& leaf) {
  return leaf.requires_grad() && torch::autograd::impl::try_get_grad_accumulator(leaf) != nullptr;
}

// Limits this process to `fraction` of a GPU's memory; call it before the process first uses a GPU, later it has no
// effect. It uses the settings of PYTORCH_ALLOC_CONF, the only way that a libtorch without CUDA declares, too. Throws
// torch's exception if the build doesn't know the setting.
inline void LimitGpuMemory(double fraction) {
  std::string settings = c10::CachingAllocator::getAllocatorSettings();
  if (!settings.empty()) settings += ',';
  c10::CachingAllocator::setAllocatorSettings(settings + "per_process_memory_fraction:" + std::to_string(fraction));
}

}  // namespace muster
