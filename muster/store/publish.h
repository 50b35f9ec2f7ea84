// Words that tell whether what was stored before them is there: how the arena commits. Every process that maps it may
// be killed between any two instructions, and others look at it meanwhile.
#pragma once

#include <atomic>

namespace muster {

// Stores of this process stay on their side of it. What is guarded against is death, not another processor, so nothing
// more is needed: what a process has stored is there when it is dead.
inline void KeepOrder() { std::atomic_signal_fence(std::memory_order_seq_cst); }

template <typename T>
void Publish(T& word, T value) {
  KeepOrder();
  std::atomic_ref<T>(word).store(value, std::memory_order_release);
  KeepOrder();
}

template <typename T>
T Observe(T& word) {
  return std::atomic_ref<T>(word).load(std::memory_order_acquire);
}

}  // namespace muster
