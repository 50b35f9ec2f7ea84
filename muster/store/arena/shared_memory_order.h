// Orders stores to memory that outlives the process. They guard against death at any instruction, not against another
// processor, so compiler fences are enough: what a process has stored is there when it is dead. Thread-safe.
#pragma once

#include <atomic>

namespace muster {

// This process's stores aren't moved across it.
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
