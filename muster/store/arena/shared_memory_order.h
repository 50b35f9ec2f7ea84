// Order of stores to memory that outlives the process. What is guarded against is death at any instruction, not another
// processor, so compiler fences are enough: what a process has stored is there when it is dead. Thread-safe.
#pragma once

#include <atomic>

namespace muster {

// Stores of this process stay on their side of it.
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
