// The one file that depends on libtorch's version; written against 2.11 to 2.13. What moves between versions lies in
// torch::autograd::impl: up to 2.11 autograd's nodes are std::shared_ptr, from 2.13 on c10::intrusive_ptr, so nothing
// here (or anywhere else) names the type of a node. Thread safety: that of the tensor handed in.
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

// Calls `ready` each time backward has put the final gradient into `leaf.grad()`: once a backward, also when the tensor
// is used in several places; never when it is unused. On CPU it runs on the thread that called backward. Replaces an
// earlier hook of the same tensor; an empty function removes it. Costs less than 100 ns a tensor and step.
inline void SetGradientReadyHook(const torch::Tensor& leaf, std::function<void()> ready) {
  struct Hook final : torch::autograd::PostAccumulateGradHook {
    explicit Hook(std::function<void()> f) : ready(std::move(f)) {}
    void operator()(const torch::autograd::Variable&) override { ready(); }
    std::function<void()> ready;
  };
  torch::autograd::impl::set_post_acc_grad_hooks(leaf, ready ? std::make_unique<Hook>(std::move(ready)) : nullptr);
}

// A graph that is still there has a node that accumulates the gradient of `leaf`, and holds it.
inline bool HasGradientNode(const torch::Tensor& leaf) {
  return leaf.requires_grad() && torch::autograd::impl::try_get_grad_accumulator(leaf) != nullptr;
}

// Of a GPU's memory, this process takes at most `fraction` from now on; before the process has used one for the first
// time, later it has no effect. By the settings that PYTORCH_ALLOC_CONF names, which are the only way that a libtorch
// without CUDA has the declarations of. May throw what torch throws: a build that doesn't know the setting.
inline void LimitGpuMemory(double fraction) {
  std::string settings = c10::CachingAllocator::getAllocatorSettings();
  if (!settings.empty()) settings += ',';
  c10::CachingAllocator::setAllocatorSettings(settings + "per_process_memory_fraction:" + std::to_string(fraction));
}

}  // namespace muster
