// Compiles the rules' element loops twice, for the processor's baseline and for AVX2, and chooses at run time.
// target_clones can't be used: its resolver runs before thread-sanitizer is ready and crashes there, and clang 14 knows
// fewer names. AVX-512 gained nothing in measurements, as the loops are at memory bandwidth with AVX2 already. Fused
// multiply-add is off (muster/CMakeLists.txt: -ffp-contract=off), so that every machine computes the same bits.
#pragma once

#include <cstddef>

#include "muster/base/bytes.h"
#include "muster/base/check.h"

namespace muster {

// An element at any address: spans into received messages may be unaligned. Costs nothing on x86.
template <typename T>
struct __attribute__((packed, may_alias)) Loose {
  T value;
};

#if defined(__x86_64__)
template <typename Loop, typename... Args>
__attribute__((target("avx2"))) void RunLoopAvx2(Args... args) {
  Loop::Run(args...);
}
#endif

// Loop::Run must be static and always_inline, and takes pointers and numbers.
template <typename Loop, typename... Args>
void RunLoop(Args... args) {
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  if (has_avx2) return RunLoopAvx2<Loop>(args...);
#endif
  Loop::Run(args...);
}

template <typename T>
Loose<T>* Elements(MutableByteSpan bytes, size_t count) {
  MUSTER_CHECK(bytes.size() == count * sizeof(T));
  return reinterpret_cast<Loose<T>*>(bytes.data());
}

template <typename T>
const Loose<T>* Elements(ByteSpan bytes, size_t count) {
  MUSTER_CHECK(bytes.size() == count * sizeof(T));
  return reinterpret_cast<const Loose<T>*>(bytes.data());
}

}  // namespace muster
